"""A tenant's Prometheus reads the numbers that REST answers, whatever its groups are called."""

from __future__ import annotations

import math
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from hypothesis import given
from hypothesis import strategies as st

from controlplane.history import now
from controlplane.history.exposition import GAUGES, GroupLag, exposition
from controlplane.history.metrics import COUNTED, METRICS
from controlplane.history.now import exposition_get
from tests.controlplane.test_instances_api import URL

from .conftest import MIB, NOON, keep, keep_waits, move, sample
from .test_lag_api import lag_of

SAMPLE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\{(?P<labels>(?:[a-z_]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\} (?P<value>\S+)'
)
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\n"])*)"')
ONE = "ins-k3v9x2qa"


def parsed(text):
    """As the specification of the format 0.0.4 has it: by name and labels. Each family has its type once, before its samples."""
    assert text == "" or text.endswith("\n")
    found, types = {}, []
    for line in text.split("\n")[:-1]:
        if line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert name not in types
            assert kind == "gauge"
            types.append(name)
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match["name"] == types[-1]
            labels = {
                name: re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], value)
                for name, value in LABEL.findall(match["labels"])
            }
            key = (match["name"], tuple(sorted(labels.items())))
            assert key not in found
            found[key] = float(match["value"])
    return found


def value_of(found, name, **labels):
    return found.get((f"sluice_{name}", tuple(sorted(labels.items()))))


def seconds(clock):
    return int(clock.time.timestamp())


@given(
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), unique=True),
    value=st.floats(0, 2**60),
)
def test_whatever_groups_are_called_a_parser_reads_it(names, value):
    text = exposition(
        ONE, {"produce_bytes_per_s": value}, [GroupLag(name, 5, 1.5, 9, 90) for name in names], is_known=True
    )
    found = parsed(text)
    assert value_of(found, "produce_bytes_per_second", instance_id=ONE) == value
    for name in names:
        assert value_of(found, "group_lag_messages", instance_id=ONE, group=name) == 5
        assert value_of(found, "group_lag_bytes", instance_id=ONE, group=name) == 9
        assert value_of(found, "group_lag_seconds", instance_id=ONE, group=name) == 1.5
        assert value_of(found, "group_consumed_records_per_second", instance_id=ONE, group=name) == 1.5
        assert value_of(found, "group_produced_records_per_second", instance_id=ONE, group=name) is None, "not known"
    assert len(found) == 3 + 4 * len(names)  # two limits are unlimited


def test_names_have_base_units_and_no_two_are_alike():
    names = [gauge.name for gauge in GAUGES.values()]
    assert len(set(names)) == len(METRICS) - len(COUNTED)
    assert all(re.fullmatch(r"sluice_([a-z_]+(_bytes|_per_second|_ratio)|connections)", name) for name in names)


@pytest.fixture
def read(alice, instance, at_noon):
    def read():
        cache.clear()
        return parsed(exposition_get(organisation=alice.organisation, instance_id=instance.id, clock=at_noon))

    return read


def test_it_has_the_newest_sample(read, instance, at_noon):
    keep([sample(NOON, instance.id, connections=1), sample(NOON + 10, instance.id, connections=9)])
    move(at_noon, NOON + 25)
    found = read()
    assert {name: value_of(found, name, instance_id=instance.id) for name in (
        "produce_bytes_per_second", "produce_limit_bytes_per_second", "produce_allocated_bytes_per_second",
        "consume_bytes_per_second", "storage_used_bytes", "storage_limit_bytes", "connections",
    )} == {
        "produce_bytes_per_second": MIB, "produce_limit_bytes_per_second": 5 * MIB,
        "produce_allocated_bytes_per_second": 4 * MIB, "consume_bytes_per_second": 2 * MIB,
        "storage_used_bytes": 10**9, "storage_limit_bytes": 10**10, "connections": 9,
    }  # fmt: skip


def test_throttled_time_is_a_share_of_half_a_minute_ago(read, instance, at_noon):
    keep([sample(NOON + 10 * number, instance.id) for number in range(6)])
    keep_waits([(instance.id, "produce", 1000 * (NOON + 20), 1000 * (NOON + 30), 2_500)])
    move(at_noon, NOON + 60)
    assert value_of(read(), "produce_throttled_ratio", instance_id=instance.id) == 0.25


def test_unlimited_is_infinite_even_if_it_was_limited_a_moment_ago(read, instance, at_noon):
    keep([sample(NOON, instance.id), sample(NOON + 10, instance.id, produce_limit_bytes_per_s=None)])
    move(at_noon, NOON + 20)
    found = read()
    assert value_of(found, "produce_limit_bytes_per_second", instance_id=instance.id) == math.inf
    assert value_of(found, "consume_limit_bytes_per_second", instance_id=instance.id) == 5 * MIB


def test_what_is_older_than_a_minute_is_not_of_now(read, instance, at_noon):
    keep([sample(NOON, instance.id)])
    move(at_noon, NOON + 90)
    assert read() == {}


def test_groups_have_their_last_minute(read, instance, at_noon):
    lag_of(instance.id, "billing", NOON - 60, 9, 90)
    lag_of(instance.id, "billing", NOON, 5, 30, 900)
    lag_of(instance.id, "undated", NOON, 4, None)
    lag_of(instance.id, "gone", NOON - 600, 3, 1)
    lag_of("ins-another1", "secret", NOON, 77, 1)
    move(at_noon, NOON + 30)
    assert read() == {
        ("sluice_group_lag_messages", (("group", "billing"), ("instance_id", instance.id))): 5,
        ("sluice_group_lag_messages", (("group", "undated"), ("instance_id", instance.id))): 4,
        ("sluice_group_lag_bytes", (("group", "billing"), ("instance_id", instance.id))): 900,
        ("sluice_group_lag_seconds", (("group", "billing"), ("instance_id", instance.id))): 30,
    }


def test_of_too_many_groups_the_ones_furthest_behind_are_there(read, instance, at_noon, monkeypatch):
    monkeypatch.setattr(now, "MOST_GROUPS", 2)
    for number in range(5):
        lag_of(instance.id, f"g{number}", NOON, number, 1)
    found = read()
    assert {dict(labels)["group"] for _, labels in found} == {"g3", "g4"}


def test_an_answer_is_kept_for_five_seconds(alice, instance, at_noon, django_assert_num_queries):
    keep([sample(NOON, instance.id)])
    move(at_noon, NOON + 10)
    at = {"organisation": alice.organisation, "instance_id": instance.id, "clock": at_noon}
    first = exposition_get(**at)
    keep([sample(NOON + 10, instance.id, connections=99)])
    at_noon.time += timedelta(seconds=5)
    with django_assert_num_queries(1):  # whose it is
        assert exposition_get(**at) == first
    assert now.CACHED_S == 5


def test_by_rest_it_is_text_for_whoever_belongs_to_it(alice, viewer, charlie, instance):
    answer = viewer.api.get(f"{URL}/{instance.id}/prometheus")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert alice.api.get(f"{URL}/{instance.id}/prometheus").content == answer.content
    foreign = charlie.api.get(f"{URL}/{instance.id}/prometheus")
    missing = charlie.api.get(f"{URL}/{ONE}/prometheus")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content.replace(instance.id.encode(), b"ID") == missing.content.replace(ONE.encode(), b"ID")


def test_a_row_of_a_clock_that_was_ahead_is_not_of_now(read, instance, at_noon):
    lag_of(instance.id, "billing", NOON, 5, 30)
    lag_of(instance.id, "billing", NOON + 86_400, 99, 1)
    move(at_noon, NOON + 30)
    assert value_of(read(), "group_lag_messages", instance_id=instance.id, group="billing") == 5
