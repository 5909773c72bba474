"""The command: what it prints and writes, and its exit status."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from dataplane.handlers.admin import resources
from dataplane.protocol.errors import ApiError, ErrorCode
from tests.leaks import __main__ as command
from tests.leaks.virtual import two_instances


@pytest.fixture
def run(monkeypatch, tmp_path):
    @contextmanager
    def sides(_arguments):
        yield two_instances()[1]

    monkeypatch.setattr(command, "_sides", sides)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "REPORT", tmp_path / "var" / "reports" / "leaks.json")

    def main(*arguments):
        monkeypatch.setattr("sys.argv", ["leaks", *arguments])
        status = command.main()
        return status, json.loads(command.REPORT.read_text())

    return main


def test_without_a_leak_it_ends_well_and_says_how_much_it_asked(run, capsys):
    status, report = run("--api", "describe_configs", "--edges")
    assert status == 0
    assert report["leaks"] == []
    assert report["cells"]["pairs"] == report["by_api"]["DESCRIBE_CONFIGS"]["pairs"] > 10
    said = capsys.readouterr().out
    assert "DESCRIBE_CONFIGS" in said
    assert said.endswith(" 0 leaks\n")


def test_a_leak_is_printed_with_both_answers_and_fails_the_run(run, capsys, monkeypatch):
    def topic(ctx, operation, name):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {ctx.session.names.topic_in(name)}")

    monkeypatch.setattr(resources, "_topic", topic)
    status, report = run("--api", "DESCRIBE_CONFIGS", "--edges")
    assert status == 1
    assert {leak["api"] for leak in report["leaks"]} == {"DESCRIBE_CONFIGS"}
    said = capsys.readouterr().out
    assert "the answer holds A's physical names" in said
    assert "foreign: DescribeConfigsResponse(" in said


@pytest.mark.parametrize("only", ["--bootstrap", "--foreign"])
def test_one_address_is_not_enough(run, only):
    with pytest.raises(SystemExit, match="2"):
        run(only, "127.0.0.1:9092")
