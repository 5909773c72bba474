"""How unevenly a topic lies, and what follows from what is known of it: pure rules."""

from __future__ import annotations

import pytest

from controlplane.kafka.client import Partition
from controlplane.kafka.group_door import DescribedGroup, ListedGroup, Member, Span
from controlplane.kafka.groups import Group
from controlplane.topic_insights import groups as rules
from controlplane.topic_insights.groups import Reader, near_ms, readers_of
from controlplane.topic_insights.hints import CODES, HOT_TIMES, Known, hints_of
from controlplane.topic_insights.skew import Skew, is_hot, skew_of

MIB = 2**20
DAY_MS = 86_400_000


def layout(*leaders, replicas=(1, 2, 3), isr=None):
    return [
        Partition(number, leader, replicas, replicas if isr is None else isr) for number, leader in enumerate(leaders)
    ]


def codes(**known):
    known.setdefault("layout", layout(1, 2, 3))
    return [hint.code for hint in hints_of(Known(**known))]


def reader(**members):
    return Reader(
        **{"group": "g", "state": "Stable", "members": 1, "lag": 5, "lost": 0, "is_near_retention": False, **members}
    )


def test_an_even_topic_is_an_even_share():
    assert skew_of(layout(1, 2, 3), [10, 10, 10]) == Skew(0, 1.0, 1, 1.0, 2)


def test_the_fullest_and_the_busiest_are_named():
    assert skew_of(layout(2, 2, 3), [0, 90, 10]) == Skew(1, 2.7, 2, 2.0, 3)


def test_what_is_written_now_has_a_share_of_its_own():
    found = skew_of(layout(1, 2, 3), [10, 10, 10], [0, 5, 1])
    assert (found.fullest, found.hottest_partition, found.hottest) == (1.0, 1, 2.5)
    for nothing in ([0, 0, 0], [9, None, 9], None):
        assert skew_of(layout(1, 2, 3), [10, 10, 10], nothing).hottest is None


def test_what_is_not_known_of_one_makes_the_whole_unknown():
    found = skew_of(layout(1, None, 3), [10, None, 10])
    assert (found.fullest_partition, found.fullest, found.leaders) == (None, None, 1.0)
    assert skew_of(layout(None), [0]) == Skew(None, None, None, None, 0)
    assert skew_of([], []) == Skew(None, None, None, None, 0)


@pytest.mark.parametrize(
    ("held", "hot"),
    [([5], False), ([31, 10], True), ([30, 10], False), ([0, 0], False), ([9, 0, 0], True), ([1, 1, 1], False)],
)
def test_one_is_hot_that_holds_more_than_three_times_what_the_others_do(held, hot):
    assert is_hot(held, times=HOT_TIMES) is hot


def test_nothing_is_said_of_a_topic_in_order_of_which_all_is_known():
    known = {"config": {"min.insync.replicas": "2"}, "sizes": [MIB] * 3, "records": [9] * 3, "readers": [reader()]}
    assert codes(**known, unused_days=None) == []


def test_nor_of_what_is_not_known():
    assert codes() == []


@pytest.mark.parametrize(
    ("known", "code"),
    [
        ({"layout": layout(None, 2)}, "no_leader"),
        ({"layout": layout(1, 2, isr=(1, 2))}, "under_replicated"),
        ({"layout": layout(1, replicas=(1,))}, "one_replica"),
        ({"config": {"min.insync.replicas": "3"}}, "no_spare_replica"),
        ({"sizes": [MIB, 10 * MIB, MIB]}, "hot_partition"),
        ({"records": [1, 2000, 1]}, "hot_partition"),
        ({"written": [MIB, 10 * MIB, MIB], "sizes": [MIB] * 3}, "hot_partition"),
        ({"written": [1, 10, 1], "sizes": [MIB, 10 * MIB, MIB]}, "hot_partition"),
        ({"readers": [], "records": [0, 0, 1]}, "no_group"),
        ({"readers": [reader(lost=7)]}, "records_lost"),
        ({"readers": [reader(is_near_retention=True)]}, "lag_near_retention"),
        ({"unused_days": 7}, "unused"),
    ],
)
def test_each_has_its_code(known, code):
    assert codes(**known) == [code]
    assert code in CODES


@pytest.mark.parametrize(
    "known",
    [
        {"config": {"min.insync.replicas": "2"}},
        {"config": {"min.insync.replicas": None}},
        {"sizes": [10, 1000, 10]},  # too little to say anything
        {"sizes": [MIB, 10 * MIB, None]},
        {"sizes": [MIB] * 3, "records": [1, 2000, 1]},  # where bytes are known they count
        {"written": [MIB] * 3, "sizes": [MIB, 10 * MIB, MIB]},  # what is written now counts
        {"written": [1, 10, 1]},
        {"written": [MIB, 10 * MIB, None]},
        {"readers": [], "records": [0, 0, 0]},
        {"readers": [], "records": [9, 9, 9], "more_groups": 1},
        {"readers": None, "records": [9, 9, 9]},
        {"unused_days": 6},
    ],
)
def test_and_is_not_said_without_ground(known):
    assert codes(**known) == []


def test_a_share_is_not_rounded_up_to_the_whole():
    (hint,) = hints_of(Known(layout(1, 2), sizes=[999 * MIB, MIB]))
    assert hint.detail.startswith("partition 0 holds 99 % of the topic")


def test_one_replica_is_enough_said_of_replicas():
    assert codes(layout=layout(1, replicas=(1,)), config={"min.insync.replicas": "1"}) == ["one_replica"]


def test_warnings_come_first():
    assert codes(layout=layout(1, replicas=(1,)), unused_days=7, readers=[reader(lost=1)])[-1] == "unused"


@pytest.mark.parametrize(
    ("retention", "policy", "expected"),
    [
        (str(DAY_MS), "delete", 10 * DAY_MS - DAY_MS * 8 // 10),
        (str(DAY_MS), "compact,delete", 10 * DAY_MS - DAY_MS * 8 // 10),
        (str(DAY_MS), "compact", None),
        ("-1", "delete", None),
        (None, "delete", None),
        (str(DAY_MS), None, None),
        ("soon", "delete", None),
    ],
)
def test_when_a_record_is_near_its_end(retention, policy, expected):
    assert near_ms(retention, policy, 10 * DAY_MS) == expected


class TestReaders:
    """Groups of an instance, of which some read the topic."""

    PLACE = ("orders", 0)

    def read(self, monkeypatch, found, spans=None, deadlines=None):
        listed = [group.described for group in found]
        monkeypatch.setattr(rules.groups, "list_all", lambda *_place: listed)
        monkeypatch.setattr(rules.groups, "read", lambda *_asked: found)
        monkeypatch.setattr(
            rules.backlog_door, "read", lambda _cluster, _id, some: {each: 10 * (each[3] - each[2]) for each in some}
        )
        spans = {self.PLACE: Span(100, 200)} if spans is None else spans
        return readers_of(None, "ins-a", "orders", spans, deadlines or {}).shown

    def group(self, name, committed, *partitions):
        members = tuple(Member(f"m{number}", "c", "h", (place,)) for number, place in enumerate(partitions))
        return Group(DescribedGroup(name, "Stable", "range", members), committed)

    def test_those_that_have_an_offset_or_a_member_there(self, monkeypatch):
        found = self.read(
            monkeypatch,
            [
                self.group("behind", {self.PLACE: 40}),
                self.group("elsewhere", {("other", 0): 4}, ("other", 0)),
                self.group("new", {}, self.PLACE, ("other", 1)),
                self.group("done", {self.PLACE: 200}, self.PLACE),
            ],
        )
        assert [(each.group, each.members, each.lag, each.lag_bytes, each.lost) for each in found] == [
            ("behind", 0, 100, 1_000, 60),
            ("done", 1, 0, 0, 0),
            ("new", 1, None, None, 0),
        ]

    @pytest.mark.parametrize(
        ("deadlines", "near"),
        [({PLACE: 150}, True), ({PLACE: 120}, False), ({PLACE: None}, True), ({}, False), ({PLACE: 121}, True)],
    )
    def test_what_is_read_next_is_near_its_end(self, monkeypatch, deadlines, near):
        (found,) = self.read(monkeypatch, [self.group("g", {self.PLACE: 120})], deadlines=deadlines)
        assert found.is_near_retention is near

    def test_who_has_read_everything_is_not(self, monkeypatch):
        (found,) = self.read(monkeypatch, [self.group("g", {self.PLACE: 200})], deadlines={self.PLACE: None})
        assert not found.is_near_retention

    def test_without_an_end_there_is_no_lag(self, monkeypatch):
        (found,) = self.read(monkeypatch, [self.group("g", {self.PLACE: 120})], spans={})
        assert (found.lag, found.lost) == (None, 0)

    def test_of_too_many_groups_the_first_are_looked_at_and_the_others_counted(self, monkeypatch):
        monkeypatch.setattr(rules, "MOST_GROUPS", 1)
        asked = []
        listed = [ListedGroup("a", "Empty"), ListedGroup("b", "Stable"), ListedGroup("c", "Stable")]
        monkeypatch.setattr(rules.groups, "list_all", lambda *_place: listed)
        monkeypatch.setattr(rules.groups, "read", lambda _cluster, _id, names: asked.extend(names) or [])
        assert readers_of(None, "ins-a", "orders", {}, {}) == ([], 2)
        assert asked == ["b"], "one with members before one without"
