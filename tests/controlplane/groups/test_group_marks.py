"""The mark of a group changes with its members, with what they say when they join, and with what they are assigned."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from dataclasses import replace

import pytest

from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import group_marks, leaving
from controlplane.kafka.group_marks import GroupMark
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from dataplane.protocol.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

from .test_classic_members import member

COORDINATOR, WHO = ("127.0.0.1", 9092), Identification("s")
ONE = DescribedGroupMember("w-1-uuid", None, "w-1", "/10.0.0.7", b"\xff\xfe", b"\xfe\xff\xff")
TWO = replace(ONE, member_id="w-2-uuid")
STABLE = DescribedGroup(0, None, "k.öl", "Stable", "consumer", "range", (ONE, TWO))


def classic(*groups):
    return encode(DescribeGroupsResponse(0, groups), 4)


def of_consumers(*groups):
    return encode(ConsumerGroupDescribeResponse(groups=groups), 1)


def mark_of(group):
    ((_, found),) = group_marks.classic_in(classic(group))
    return found.mark


@pytest.mark.parametrize(
    "other",
    [
        replace(STABLE, members=(ONE,)),
        replace(STABLE, members=(ONE, replace(TWO, member_id="w-3-uuid"))),
        replace(STABLE, members=(ONE, replace(TWO, member_assignment=b""))),
        replace(STABLE, members=(ONE, replace(TWO, member_metadata=b"generation 2"))),
        replace(STABLE, protocol_data="roundrobin"),
    ],
)
def test_what_is_another_has_another_mark(other):
    assert mark_of(other) != mark_of(STABLE)


def test_a_static_member_that_was_restarted_is_the_same_one_and_another_instance_is_not():
    static = replace(ONE, group_instance_id="w-1")
    mark = mark_of(replace(STABLE, members=(static, TWO)))
    again = replace(static, member_id="w-1-another", member_metadata=b"generation -1", client_host="/10.0.0.8")
    assert mark_of(replace(STABLE, members=(again, TWO))) == mark
    for other in (replace(static, group_instance_id="w-9"), replace(static, member_assignment=b"other"), ONE):
        assert mark_of(replace(STABLE, members=(other, TWO))) != mark


def test_the_order_of_members_and_the_state_are_no_part_of_it():
    assert mark_of(replace(STABLE, members=(TWO, ONE), group_state="Empty")) == mark_of(STABLE)


def test_bytes_of_one_member_do_not_pass_for_another_members():
    one = replace(STABLE, members=(replace(ONE, member_metadata=b"ab", member_assignment=b"c"),))
    other = replace(STABLE, members=(replace(ONE, member_metadata=b"a", member_assignment=b"bc"),))
    assert mark_of(one) != mark_of(other)


def test_of_the_consumer_protocol_the_epoch_is_the_mark():
    group = ConsumerGroupDescribeGroup(0, None, "k.new", "Reconciling", 7, 6, "uniform", (member("a", 1),))
    gone = ConsumerGroupDescribeGroup(69, "there is no such group", "k.gone")
    found = dict(group_marks.of_consumers_in(of_consumers(gone, group)))
    assert found == {"k.new": GroupMark("Reconciling", "epoch 7")}


@pytest.mark.parametrize(
    ("whole", "read"),
    [
        (classic(STABLE), group_marks.classic_in),
        (
            of_consumers(ConsumerGroupDescribeGroup(0, None, "k.n", "Stable", 7, 6, "u", (member("a", 1),))),
            group_marks.of_consumers_in,
        ),
    ],
)
def test_an_answer_that_ends_early_is_an_error(whole, read):
    for size in range(len(whole) - 1):
        with pytest.raises(struct.error):
            list(read(whole[:size]))


@pytest.fixture
def asked(monkeypatch):
    """By whom each question was answered: the key, and the groups it was about."""
    questions = []
    new = ConsumerGroupDescribeGroup(0, None, "k.new", "Stable", 7, 7, "uniform", ())

    def ask(_connection, key, version, body, *, flexible=False):
        assert version == {15: 4, 69: 1}[key]
        if key == 15:
            request = decode(DescribeGroupsRequest, 4, body)
            names = request.groups
            assert not request.include_authorized_operations
            questions.append((key, names))
            there = {"k.öl": STABLE, "k.moved": DescribedGroup(16, None, "k.moved", "")}
            return classic(*(there.get(name, DescribedGroup(0, None, name, "Dead")) for name in names))
        assert flexible
        names = decode(ConsumerGroupDescribeRequest, 1, body).group_ids
        questions.append((key, names))
        return of_consumers(*(new if name == "k.new" else ConsumerGroupDescribeGroup(69, "no", name) for name in names))

    monkeypatch.setattr(leaving, "signed_in", lambda *_args, **_named: nullcontext("a connection"))
    monkeypatch.setattr(leaving, "ask", ask)
    return questions


def fetch(names, within_s=1.0):
    return group_marks.fetch_within(COORDINATOR, WHO, names, timeout_s=1, within_s=within_s)


def test_those_that_are_dead_to_the_classic_question_are_asked_about_by_the_other(asked):
    found = fetch(["k.öl", "k.new", "k.gone", "k.moved"])
    assert {name: mark.state for name, mark in found.items()} == {"k.öl": "Stable", "k.new": "Stable"}
    assert asked == [(15, ("k.öl", "k.new", "k.gone", "k.moved")), (69, ("k.new", "k.gone"))]


def test_thousands_are_asked_about_fifty_at_a_time(asked):
    fetch([f"k.{number}" for number in range(120)])
    assert [(key, len(names)) for key, names in asked] == [(15, 50), (69, 50)] * 2 + [(15, 20), (69, 20)]


def test_what_a_later_question_comes_to_does_not_lose_what_earlier_ones_were_answered(asked, monkeypatch):
    answers, ask = iter([True, False]), leaving.ask

    def breaking(*args, **named):
        if not next(answers):
            raise ClusterUnavailable("the group's coordinator does not answer")
        return ask(*args, **named)

    monkeypatch.setattr(leaving, "ask", breaking)
    monkeypatch.setattr(group_marks, "GROUPS_AT_ONCE", 1)
    assert list(fetch(["k.öl", "k.other"])) == ["k.öl"]
    answers = iter([False])
    with pytest.raises(ClusterUnavailable):
        fetch(["k.öl"])


def test_what_takes_too_long_is_left_for_the_next_round(asked):
    assert fetch(["k.öl"], within_s=0) == {}
    assert not asked
