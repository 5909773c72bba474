"""Groups in a list, and messages as they come, on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from controlplane.cli import client
from controlplane.core.clock import SYSTEM_CLOCK
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.history.test_lag_api import lag_of

from .test_invoice_files import Stream


@pytest.fixture
def key(ok, instance):
    ok("topic", "create", instance.name, "orders", "--partitions", 2, "--replication-factor", 1)
    return instance.id.removeprefix("ins-")


def test_the_list_has_seconds_and_can_begin_with_the_furthest_behind(ok, key, instance, admin):
    for n in range(5):
        admin.messages.write(f"{key}.orders", 0, b"%d" % n)
    admin.groups.found[f"{key}.a"] = FakeGroup({(f"{key}.orders", 0): 4})
    admin.groups.found[f"{key}.b"] = FakeGroup({(f"{key}.orders", 0): 1})
    lag_of(instance.id, "b", int(SYSTEM_CLOCK.now().timestamp()) - 60, 4, 31)
    table = ok("group", "list", instance.name).out
    assert "lag_seconds" in table or "LAG_SECONDS" in table.upper()
    assert table.index(" a") < table.index("31") if " a" in table else "31" in table
    named = [row["name"] for row in ok("group", "list", instance.name, "-o", "json").json["items"]]
    worst = [row["name"] for row in ok("group", "list", instance.name, "--by", "lag", "-o", "json").json["items"]]
    assert (named, worst) == (["a", "b"], ["b", "a"])
    one = ok("group", "list", instance.name, "--by", "lag", "--limit", 1, "-o", "json").json["items"]
    assert [row["name"] for row in one] == ["b"]


def test_brokers_that_do_not_answer_are_said(ok, key, instance, admin):
    admin.groups.found[f"{key}.a"] = FakeGroup()
    admin.groups.silent.add(("127.0.0.1", 2))
    assert "brokers that do not answer are 2" in ok("group", "list", instance.name).err


def test_messages_come_one_a_line_from_now_on(ok, key, instance, admin, worker, monkeypatch):
    admin.messages.write(f"{key}.orders", 0, b"before")
    left = [b"first\nline", b"\x1b[31mred", b"\xff"]
    sleeps = worker.sleep

    def sleep(seconds):
        sleeps(seconds)
        admin.messages.write(f"{key}.orders", 1, left.pop(0), key=b"k", headers=(("h", b"v"),))

    monkeypatch.setattr(worker, "sleep", sleep)
    out = ok("message", "tail", instance.name, "orders", "--limit", 2).out
    lines = out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1:0", "1:1"]
    assert [line.split("\t")[2:] for line in lines] == [["k", "first\\nline"], ["k", "\\x1b[31mred"]]
    assert worker.pauses == [2.0, 2.0]
    left[:] = [b"one", b"two"]
    out = ok(
        "message", "tail", instance.name, "orders", "--contains", "two", "--header", "h=v", "--limit", 1, "-o", "json"
    ).out
    (line,) = out.splitlines()
    assert json.loads(line)["offset"] == 3


def test_bytes_that_are_no_text_are_typed_in_hex_or_base64(ok, as_alice, key, instance):
    ok(
        "message",
        "produce",
        instance.name,
        "orders",
        "--key",
        "00ff",
        "--key-as",
        "hex",
        "--value",
        "//8=",
        "--value-as",
        "base64",
    )
    ok("message", "produce", instance.name, "orders", "--key", "", "--value", "x")
    found = ok("message", "list", instance.name, "orders", "--key", "AP8=", "--key-as", "base64", "-o", "json").json[
        "items"
    ]
    assert [item["value"] for item in found] == ["//8="]
    every = ok("message", "list", instance.name, "orders", "-o", "json").json["items"]
    assert {item["key"] for item in every} == {"AP8=", ""}
    assert as_alice("message", "produce", instance.name, "orders", "--key", "0", "--key-as", "hex").status == 2


def test_a_list_that_cannot_get_on_ends(as_alice, ok, key, instance, admin):
    admin.messages.write(f"{key}.orders", 0, b"x")
    layout = admin.topics[f"{key}.orders"]
    away = type(layout.partitions[1])(1, None, (1,), ())
    admin.topics[f"{key}.orders"] = type(layout)(layout.name, (layout.partitions[0], away))
    ended = as_alice("message", "list", instance.name, "orders", "--start", "oldest")
    assert ended.status != 0
    assert "cannot be shown now" in ended.err


def filed(as_alice, monkeypatch, *typed):
    stream = Stream(terminal=False)
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", stream)
        assert as_alice(*typed).status == 0
    return stream.buffer.getvalue().decode()


def test_messages_are_a_file_over_pages_without_an_end_in_the_middle(as_alice, key, instance, admin, monkeypatch):
    monkeypatch.setattr(client, "LARGEST_PAGE", 2)
    for n in range(7):
        admin.messages.write(f"{key}.orders", 0, b"two\nlines %d" % n, key=b"k%d" % (n % 2))
    listed = ("message", "list", instance.name, "orders", "--start", "oldest")
    lines = filed(as_alice, monkeypatch, *listed, "--jsonl", "--limit", "5").splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [0, 1, 2, 3, 4]
    table = filed(as_alice, monkeypatch, *listed, "--csv", "--key-contains", "1")
    rows = list(csv.DictReader(io.StringIO(table, newline="")))
    assert [(row["offset"], row["value"]) for row in rows] == [(str(n), f"two\nlines {n}") for n in (1, 3, 5)]


def test_a_file_of_messages_is_for_no_terminal_and_of_one_kind(as_alice, instance, monkeypatch):
    listed = ("message", "list", instance.name, "orders")
    assert "only one of them" in as_alice(*listed, "--csv", "--jsonl").err
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", Stream(terminal=True))
        ran = as_alice(*listed, "--jsonl")
    assert ran.status == 2
    assert "> FILE" in ran.err
