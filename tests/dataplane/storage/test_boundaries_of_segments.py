"""The rule by which a segment ends, without a log (`storage.log.boundaries`)."""

from __future__ import annotations

from dataplane.storage.config import LogConfig
from dataplane.storage.log import boundaries
from dataplane.storage.log.boundaries import MAX_RELATIVE


def test_a_segment_is_never_larger_than_its_setting_nor_longer_than_an_index_can_say():
    config = LogConfig(segment_bytes=1_000)
    assert boundaries.has_room(config, 50, 1_000, 60)
    assert not boundaries.has_room(config, 50, 1_001, 60)
    assert boundaries.has_room(config, 50, 10, 50 + MAX_RELATIVE)
    assert not boundaries.has_room(config, 50, 10, 51 + MAX_RELATIVE)


def test_a_segment_begins_where_the_one_before_ends_unless_its_first_batch_were_out_of_reach():
    assert boundaries.next_base(10, 15, 20) == 10
    assert boundaries.next_base(10, 15, 10 + MAX_RELATIVE) == 10
    assert boundaries.next_base(10, 15, 11 + MAX_RELATIVE) == 15


def test_an_index_is_not_looked_at_before_it_can_be_full():
    config = LogConfig(segment_bytes=1_000_000, index_interval_bytes=4_096)
    assert boundaries.easy_bytes(config, 3) == 3 * 4_096
    assert boundaries.easy_bytes(config, 0) == 0
    assert boundaries.easy_bytes(config, 10**6) == 1_000_000


def test_each_segment_has_its_own_part_of_the_jitter_and_always_the_same():
    config = LogConfig(segment_ms=10_000, segment_jitter_ms=4_000)
    times = [boundaries.longest_ms(config, f"t-0-{base}") for base in range(50)]
    assert times == [boundaries.longest_ms(config, f"t-0-{base}") for base in range(50)]
    assert 6_000 < min(times) < 7_000
    assert 9_000 < max(times) <= 10_000
    assert boundaries.longest_ms(LogConfig(segment_ms=10_000), "t-0-0") == 10_000


def test_jitter_takes_nothing_off_the_least_time():
    config = LogConfig(segment_ms=10_000, segment_jitter_ms=9_000, least_roll_ms=9_500)
    assert min(boundaries.longest_ms(config, f"t-0-{base}") for base in range(50)) > 9_500
