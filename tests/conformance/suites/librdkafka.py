"""librdkafka's own test runner, even numbers, one process per number.

Quick mode drops every part of a test that is not marked quick, and then says PASSED without having sent anything: a pass
in no time counts as not run, and the numbers that quick mode leaves out are run without it (`run_full`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.conformance import fixtures
from tests.conformance.process import TIMED_OUT, run_lines
from tests.conformance.results import Result, expected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 120
NOTHING_SENT_S = 0.005  # the quickest that asks a broker takes 0.03 s


def run_quick(bootstrap: str, scratch: Path, say: Callable[[str], None], only: str = "") -> list[Result]:
    """All even numbers, `-Q`."""
    return _run("librdkafka-quick", ["-Q"], bootstrap, scratch, say, only)


def run_full(bootstrap: str, scratch: Path, say: Callable[[str], None], only: str = "") -> list[Result]:
    """The eight numbers of which quick mode leaves out all or part."""
    return _run("librdkafka-full", [], bootstrap, scratch, say, only)


def _run(
    suite: str, flags: list[str], bootstrap: str, scratch: Path, say: Callable[[str], None], only: str
) -> list[Result]:
    tests = fixtures.librdkafka() / "deps/librdkafka/tests"
    (scratch / "test.conf").write_text(f"metadata.broker.list={bootstrap}\ntest.topic.random=true\n")
    wanted = expected(suite)
    results: list[Result] = []
    for number in sorted({test[:4] for test in wanted}):
        if only and only not in number:
            continue
        found = _number(number, flags, tests, bootstrap, scratch)
        for result in found:
            if result.test in wanted and result.test.startswith(number):  # it names all others as skipped
                say(f"{result.outcome:8} {result.test:40} {result.seconds:6.1f} s")
                results.append(result)
    return results


def _number(number: str, flags: list[str], tests: Path, bootstrap: str, scratch: Path) -> list[Result]:
    log, said = scratch / f"{number}.log", scratch / f"{number}.json"
    status = run_lines(
        ["./test-runner", *flags, "-p1", "-L"],
        limit_s=LIMIT_S,
        log=log,
        folder=tests,
        environment={
            "LD_LIBRARY_PATH": f"{tests.parent}/src:{tests.parent}/src-cpp",
            "RDKAFKA_TEST_CONF": str(scratch / "test.conf"),
            "TEST_KAFKA_VERSION": "3.9.0",
            "CI": "1",
            "TESTS": number,
            "TEST_REPORT": str(said),
            "KAFKA_PATH": str(fixtures.shim()),
            "BROKERS": bootstrap,
        },
    )
    if status == TIMED_OUT:
        return [Result(test, "timeout", LIMIT_S, f"see {log.name}") for test in _tests_of(number)]
    if not said.exists():
        return [Result(test, "fail", 0.0, f"exit status {status}, see {log.name}") for test in _tests_of(number)]
    return [_result(name, entry, log) for name, entry in json.loads(said.read_text())["tests"].items()]


def _tests_of(number: str) -> list[str]:
    """As far as we expect anything of them."""
    names = {**expected("librdkafka-quick"), **expected("librdkafka-full")}
    return [test for test in names if test.startswith(number)]


def _result(name: str, entry: dict[str, object], log: Path) -> Result:
    state, seconds = str(entry["state"]), float(str(entry.get("duration", 0.0)))
    outcome = {"PASSED": "pass", "SKIPPED": "skip"}.get(state, "fail")
    if outcome == "pass" and seconds < NOTHING_SENT_S:
        outcome = "not run"
    return Result(name, outcome, seconds, f"{state}, see {log.name}" if outcome == "fail" else "")
