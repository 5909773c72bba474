"""What counts as a difference, and how it is told."""

from __future__ import annotations

import json

from tests.killed.__main__ import report, table
from tests.killed.campaign import Outcome
from tests.killed.comparing import different
from tests.killed.plan import DATABASES, KINDS, planned
from tests.killed.traffic import Counted
from tests.nightly import figures

EXACT = Counted(read_bytes=1000, records=10, produced_slack=0, consumed_slack=0)
SLACK = Counted(read_bytes=1000, records=10, produced_slack=100, consumed_slack=50)


def test_of_a_client_that_was_still_a_byte_is_a_difference():
    assert EXACT.problems(1000, 1000) == []
    assert len(EXACT.problems(999, 1000)) == len(EXACT.problems(1001, 1000)) == 1
    assert len(EXACT.problems(1000, 999)) == len(EXACT.problems(1000, 1001)) == 1


def test_of_a_busy_one_so_much_may_be_missing_as_was_under_way_and_nothing_be_produced_that_no_log_has():
    assert SLACK.problems(900, 1050) == SLACK.problems(1000, 950) == []
    assert len(SLACK.problems(899, 1000)) == len(SLACK.problems(1001, 1000)) == 1
    assert len(SLACK.problems(1000, 949)) == len(SLACK.problems(1000, 1051)) == 1


def test_what_is_missing_what_is_too_much_and_what_is_another_differ():
    assert different("rows", {1: "a"}, {1: "a"}) == []
    for shown, computed in (({}, {1: "a"}), ({1: "a"}, {}), ({1: "b"}, {1: "a"})):
        (sentence,) = different("rows", shown, computed)
        assert sentence.startswith(f"rows: 1 of {len(computed)} differ, such as 1: ")


def test_a_report_has_every_round_and_counts_only_kills_that_were_done():
    rounds = planned(4, 1)
    outcomes = [Outcome(each, [fault.kind for fault in each.faults], figures={"records": 7}) for each in rounds]
    outcomes[-1].kills.pop()
    outcomes[-1].differences.append("rows: 1 of 1 differ, such as 1: None shown, a computed")
    document = json.loads(json.dumps(report(outcomes, {"seed": 1})))
    assert document["together"] == {"rounds": 4, "kills": 7, "records": 7, "different": 1}
    assert figures.killed(document) == document["together"]
    assert sum(document["kinds"][kind][database] for kind in KINDS for database in DATABASES) == 7
    lines = table(outcomes).splitlines()
    assert [("DIFFERENT" in line, " equal " in line) for line in lines[1:5]] == [(False, True)] * 3 + [(True, False)]
    assert len(lines) == 1 + 4 + 2 + len(KINDS)
