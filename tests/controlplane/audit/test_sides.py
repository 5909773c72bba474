"""What an entry says of before and after: found in its detail, also in entries that were written long ago."""

from __future__ import annotations

import pytest

from controlplane.cli.values import changes_text
from controlplane.core.audit_sides import ENDS, MAKES, Sides, side_text, sides

CHANGED = {"partitions": {"from": 60, "to": 90}, "config": {"audit": {"from": False, "to": True}}}


@pytest.mark.parametrize(
    ("action", "detail", "before", "after"),
    [
        (
            "instance.update",
            CHANGED,
            {"partitions": 60, "config": {"audit": False}},
            {"partitions": 90, "config": {"audit": True}},
        ),
        ("topic.create", {"partitions": 3, "config": {}}, None, {"partitions": 3, "config": {}}),
        ("topic.delete", {"partitions": 3}, {"partitions": 3}, None),
        ("topic.delete", {}, None, None),  # of an older release
        ("throttle_rule.update", {"kind": "topic"}, None, None),  # the same: what was before is not known
        ("topic.whitelist", {"cidrs": {"from": None, "to": []}}, {"cidrs": None}, {"cidrs": []}),
        (
            "topic.schema.set",
            {"format": {"from": None, "to": "avro"}, "part": "value"},
            {"format": None},
            {"format": "avro"},
        ),
        ("topic.schema.delete", {"format": {"from": "avro", "to": None}}, {"format": "avro"}, None),
        (
            "instance.delete",
            {"state": {"from": "running", "to": "isolated"}, "destroys_at": "2026-12-01"},
            {"state": "running"},
            {"state": "isolated"},
        ),
        ("account.sign_in", {"by": "password"}, None, None),
        (
            "group.offsets.reset",
            {"strategy": "earliest", "moved": [{"topic": "orders", "partition": 0, "from": 7, "to": 0}]},
            {"moved": [{"topic": "orders", "partition": 0, "value": 7}]},
            {"moved": [{"topic": "orders", "partition": 0, "value": 0}]},
        ),
        (
            "organisation.caps",
            {"caps": {"price": {"from": 5, "to": 9, "currency": "EUR"}}, "reason": "asked"},
            {"caps": {"price": {"currency": "EUR", "value": 5}}},
            {"caps": {"price": {"currency": "EUR", "value": 9}}},
        ),
    ],
)
def test_both_sides_of_an_entry(action, detail, before, after):
    assert sides(action, detail) == Sides(before, after)


def test_no_word_both_makes_and_ends():
    assert not MAKES & ENDS


def test_a_side_is_read_in_a_line():
    assert side_text({"partitions": 3, "config": {"retention.ms": None, "cleanup.policy": []}}) == (
        "partitions: 3; config.retention.ms: not set; config.cleanup.policy: empty"
    )
    assert side_text(None) == ""


def test_the_command_line_says_what_became_of_what():
    assert changes_text({"partitions": 3, "cidrs": None}, {"partitions": 6, "cidrs": []}) == (
        "partitions: 3 -> 6; cidrs: not set -> empty"
    )
    assert changes_text(None, {"partitions": 3, "config": {"retention.ms": "1"}}) == (
        "made partitions: 3; config.retention.ms: 1"
    )
    assert changes_text({"partitions": 3}, None) == "was partitions: 3"
    assert changes_text(None, None) == ""
    assert changes_text({"note": "a"}, {"note": "b\x1b[2J"}) == "note: a -> b\\x1b[2J", "nothing steers a terminal"
