"""The checker finds each anomaly in what a round's clients say, and nothing in a round that went well."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.chaos.checker import Findings, check, check_served

LOG = {0: {0: ("p1", 0), 1: ("p2", 0), 2: ("p1", 8), 3: ("p1", 16)}}
POLLS = [[0, 0, "p1", 0], [0, 1, "p2", 0], [0, 2, "p1", 8], [0, 3, "p1", 16]]


def _producer(*rows: tuple[int, int, int], sent: int) -> dict[str, Any]:
    return {
        "acknowledged": [(*row, 5.0) for row in rows],
        "refused": [],
        "fatal": [],
        "epochs_ended": [],
        "unanswered": 0,
        "sent": sent,
        "longest_gap_s": 0,
    }


def _reader() -> dict[str, Any]:
    return {"polls": copy.deepcopy(POLLS), "commits": [], "found": [], "errors": {}, "reached": True}


@pytest.fixture
def seen() -> dict[str, Any]:
    return {
        "log": copy.deepcopy(LOG),
        "producers": {
            "p1": _producer((0, 0, 0), (0, 8, 2), (0, 16, 3), sent=17),
            "p2": _producer((0, 0, 1), sent=1),
        },
        "members": {"g1": _reader(), "g2": {**_reader(), "polls": []}},
        "assigned": {"a1": _reader()},
    }


def kinds(seen: dict[str, Any]) -> set[str]:
    findings = Findings()
    check(**seen, findings=findings)
    return set(findings.counts)


def test_a_round_that_went_well_has_no_findings(seen):
    assert kinds(seen) == set()


def test_a_record_that_was_not_acknowledged_may_be_there_or_not(seen):
    seen["producers"]["p2"]["acknowledged"] = []
    assert kinds(seen) == set()
    del seen["log"][0][3]
    seen["producers"]["p1"]["acknowledged"] = seen["producers"]["p1"]["acknowledged"][:2]
    for reader in (seen["members"]["g1"], seen["assigned"]["a1"]):
        reader["polls"].pop()
    assert kinds(seen) == set()


def test_an_acknowledged_record_that_is_gone_is_lost(seen):
    del seen["log"][0][3]
    assert "lost" in kinds(seen)


def test_an_acknowledged_record_that_is_elsewhere_is_lost(seen):
    seen["log"][0][2], seen["log"][0][3] = seen["log"][0][3], seen["log"][0][2]
    assert {"lost", "reordered"} <= kinds(seen)


def test_nothing_is_acknowledged_while_a_broker_is_alone(seen):
    findings = Findings()
    check(**seen, findings=findings, alone=[(1.0, 4.9), (5.1, 9.0)])
    assert not findings
    check(**seen, findings=findings, alone=[(4.9, 5.1)])
    assert set(findings.counts) == {"alone"}


def test_a_record_acknowledged_at_an_unknown_offset_has_to_be_somewhere(seen):
    seen["producers"]["p1"]["acknowledged"][2] = (0, 16, None, 5.0)
    assert kinds(seen) == set()
    del seen["log"][0][3]
    assert "lost" in kinds(seen)


def test_a_record_at_two_offsets_is_a_duplicate(seen):
    seen["log"][0][4] = ("p1", 16)
    assert kinds(seen) == {"duplicate"}


@pytest.fixture
def sent_again(seen):
    """Record 16 of p1 is there twice, the second time under the producer's next epoch."""
    seen["log"][0][4] = ("p1", 16)
    seen["numbering"] = {0: {3: (1000, 0), 4: (1000, 1)}}
    return seen


@pytest.mark.parametrize("error", ["OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"])
def test_a_record_that_is_sent_again_under_a_new_epoch_because_a_broker_said_so_is_told(sent_again, error):
    sent_again["producers"]["p1"]["epochs_ended"] = [[1000, 0, error]]
    findings = Findings()
    check(**sent_again, findings=findings)
    assert not findings
    assert findings.renumbered == 1


@pytest.mark.parametrize(
    "ended",
    [
        [],  # nobody told it to
        [[1000, 0, ""]],  # it gave up by itself, as when nobody answered
        [[1000, 0, "REQUEST_TIMED_OUT"]],  # a broker said something else
        [[1000, 1, "OUT_OF_ORDER_SEQUENCE_NUMBER"]],  # later
        [[999, 0, "OUT_OF_ORDER_SEQUENCE_NUMBER"]],  # under another id
    ],
)
def test_a_record_under_a_new_epoch_that_no_broker_asked_for_is_a_duplicate(sent_again, ended):
    sent_again["producers"]["p1"]["epochs_ended"] = ended
    assert kinds(sent_again) == {"duplicate"}


def test_a_record_twice_under_one_epoch_is_a_duplicate_whatever_was_said(sent_again):
    sent_again["producers"]["p1"]["epochs_ended"] = [[1000, 0, "OUT_OF_ORDER_SEQUENCE_NUMBER"]]
    sent_again["numbering"][0][4] = (1000, 0)
    assert kinds(sent_again) == {"duplicate"}


def test_what_another_producer_was_told_allows_nothing(sent_again):
    sent_again["producers"]["p2"]["epochs_ended"] = [[1000, 0, "OUT_OF_ORDER_SEQUENCE_NUMBER"]]
    assert kinds(sent_again) == {"duplicate"}


def test_a_record_nobody_sent_is_foreign(seen):
    seen["log"][0][4] = ("p2", 1)
    assert kinds(seen) == {"foreign"}


def test_what_a_reader_saw_must_be_there_still(seen):
    seen["assigned"]["a1"]["polls"][3] = [0, 3, "p1", 24]
    assert kinds(seen) == {"inconsistent"}


def test_the_assigning_consumer_goes_forward_and_passes_over_nothing(seen):
    polls = seen["assigned"]["a1"]["polls"]
    polls.append(polls[1])
    assert kinds(seen) == {"nonmonotonic"}
    seen["assigned"]["a1"]["polls"] = [polls[0], polls[2], polls[3]]
    assert kinds(seen) == {"skipped", "unseen"}


def test_a_group_may_read_twice_but_not_leave_out(seen):
    member = seen["members"]["g1"]
    member["polls"] += [POLLS[1], POLLS[2]]
    assert kinds(seen) == set()
    seen["members"]["g1"]["polls"] = POLLS[:2]
    assert kinds(seen) == {"unseen"}
    seen["members"]["g2"]["polls"] = POLLS[2:]
    assert kinds(seen) == set()


def test_committed_offsets_do_not_go_back(seen):
    seen["members"]["g1"]["commits"] = [[0, 3, 10.0]]
    seen["members"]["g2"]["found"] = [[0, 2, 9.0], [0, 3, 11.0]]
    assert kinds(seen) == set()
    seen["members"]["g2"]["found"].append([0, -1001, 12.0])
    assert kinds(seen) == {"offset-back"}


def test_a_producer_that_ended_badly_and_a_consumer_that_did_not_end_are_findings(seen):
    seen["producers"]["p1"]["unanswered"] = 3
    seen["assigned"]["a1"]["reached"] = False
    assert kinds(seen) == {"producer", "consumer"}


def test_a_partition_that_must_go_on_and_does_not_is_found(seen):
    findings = Findings()
    check_served(seen["producers"], [(2.0, 8.0)], findings)  # all was acknowledged at 5.0
    assert not findings
    check_served(seen["producers"], [(2.0, 11.0)], findings)
    assert set(findings.counts) == {"stalled"}
