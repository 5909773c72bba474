"""What counts as a failure of conformance: only what Apache Kafka passes, we do not, and nobody has given a reason for."""

from __future__ import annotations

import pytest

from tests.conformance import results
from tests.conformance.results import Result, compare, kept, report


@pytest.fixture(autouse=True)
def lists(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "EXPECTED", tmp_path)
    (tmp_path / "s.tsv").write_text("# test\tresult\nplain\tpass\nthird[None]\tpass\nodd\tskip\nalways\tpass\n")
    (tmp_path / "refused.tsv").write_text("s\ttenant\tplain\tthe tenant may not\n")
    (tmp_path / "later.tsv").write_text("s\t*\tthird[None]\tcomes later\n")


def verdicts(door: str, **found: str) -> dict[str, str]:
    outcomes = [Result({"third": "third[None]"}.get(test, test), outcome) for test, outcome in found.items()]
    return {row.test: row.verdict for row in compare("s", door, outcomes)}


def test_a_test_that_apache_passes_and_we_fail_is_a_failure():
    assert verdicts("internal", plain="fail", third="pass", odd="skip", always="pass")["plain"] == "FAILS"


def test_a_reason_holds_for_its_door_only():
    assert verdicts("tenant", plain="fail", always="pass")["plain"] == "refused"


def test_a_test_that_says_nothing_is_a_failure():
    assert verdicts("internal", plain="pass", third="fail", odd="skip")["always"] == "FAILS"


def test_brackets_in_names_are_no_patterns():
    assert verdicts("internal", third="fail")["third[None]"] == "later"


def test_what_apache_skips_may_fail_here():
    assert verdicts("internal", odd="fail")["odd"] == "as apache"


def test_a_listed_test_that_passes_is_said():
    assert verdicts("tenant", plain="pass")["plain"] == "listed but passes"


def test_the_summary_counts_what_apache_passes():
    rows = compare("s", "tenant", [Result("plain", "fail"), Result("third[None]", "pass"), Result("always", "fail")])
    assert report(rows)["summary"] == [
        {"suite": "s", "door": "tenant", "apache": 3, "ours": 1, "listed": 1, "fails": 1}
    ]


def test_the_report_says_what_apache_passes_and_we_do_not_and_why():
    rows = compare("s", "tenant", [Result("plain", "fail"), Result("third[None]", "pass"), Result("always", "timeout")])
    assert [
        (each["test"], each["verdict"], each["reason"]) for each in report(rows)["apache_passes_and_we_do_not"]
    ] == [
        ("plain", "refused", "the tenant may not"),
        ("always", "FAILS", ""),
    ]


def test_a_suite_that_was_not_run_again_keeps_its_results():
    old = compare("s", "internal", [Result("plain", "pass")]) + compare("s", "tenant", [Result("plain", "fail")])
    new = compare("s", "tenant", [Result("plain", "pass")])
    assert {row.door for row in kept(report(old), new)} == {"internal"}
    assert kept(report(old), old) == kept({}, new) == []
