"""Mirrors in the console: what each has said last, and what to do where there is none."""

from __future__ import annotations

import time

import pytest

from tests.controlplane.mirrors.conftest import ROW, hers  # noqa: F401  # a fixture

from .conftest import text_of


@pytest.fixture
def at(hers):  # noqa: F811
    """Where her instance is."""
    return f"instances/{hers.instance_id}/mirrors"


def test_where_there_is_none_the_page_says_what_one_is(at_alice, instance):
    text = text_of(at_alice.get(f"instances/{instance.id}/mirrors"))
    assert "No mirror copies into this instance" in text
    assert "sluice-mirror mirror.toml" in text


def test_a_mirror_is_shown_with_lag_rates_and_both_offsets(at_alice, at, hers):  # noqa: F811
    hers.say(partitions=3, rows=[ROW, {**ROW, "partition": 1, "state": "resting", "map_from": None, "source_end": -1}])
    text = text_of(at_alice.get(at)).replace("\xa0", " ").replace("\u202f", " ")
    assert "7 records" in text
    assert "120 a second, 96 KiB/s" in text
    assert "Exactly once" in text
    assert "orders 0 Copying 7 1 200 / 1 207 1 150 from 20 on" in text
    assert "far behind, up to 3 records are read twice" in text
    assert "orders 1 Waits, and tries again" in text
    assert "Less far behind: 1 partition." in text
    assert "silent" not in text


def test_one_that_is_not_heard_any_more_is_marked(at_alice, at, hers):  # noqa: F811
    hers.say(at_ms=int(time.time() * 1000) - 600_000)
    assert "silent" in text_of(at_alice.get(at))


def test_what_a_mirror_calls_itself_is_text(at_alice, at, hers):  # noqa: F811
    hers.say(source="<script>alert(1)</script>")
    page = at_alice.get(at).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_largest_that_can_be_said_is_shown(at_alice, at, hers):  # noqa: F811
    most = 2**63 - 1
    row = {**ROW, **dict.fromkeys(("lag", "source_end", "source_offset", "target_offset", "map_from"), most)}
    rates = {"messages_per_s": 9e18, "bytes_per_s": 9e18, "every_s": 9e18}
    hers.say(lag=most, partitions=most, at_ms=most, rows=[row] * 200, **rates)
    assert at_alice.get(at).status_code == 200


def test_a_cluster_that_is_away_is_said(at_alice, at, hers, admin):  # noqa: F811
    admin.away = True
    assert at_alice.get(at).status_code == 503
