"""What tenants may set about topics: floors and ceilings, said in sentences, and applied where a topic is older."""

from dataclasses import replace

import pytest

from dataplane.cluster.topic_policy import Range, TopicPolicy, policy_of
from dataplane.cluster.topic_settings import TOPIC_SETTINGS, check_overrides
from dataplane.config import Settings
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.storage.config import LogConfig

POLICY = policy_of(Settings())


@pytest.mark.parametrize(
    ("name", "bound", "beyond"),
    [
        ("segment.ms", "600000", "599999"),
        ("max.compaction.lag.ms", "600000", "1"),
        ("segment.bytes", str(2**20), str(2**20 - 1)),
        ("segment.index.bytes", "4096", "4095"),
        ("segment.index.bytes", str(10 * 2**20), str(10 * 2**20 + 1)),
        ("index.interval.bytes", "4096", "0"),
        ("index.interval.bytes", "65536", "65537"),
        ("flush.ms", "1000", "0"),
        ("min.cleanable.dirty.ratio", "0.1", "0"),
        ("max.message.bytes", str(12 * 2**20), str(12 * 2**20 + 1)),
    ],
)
def test_a_bound_is_taken_and_what_lies_beyond_is_refused_with_both_numbers(name: str, bound: str, beyond: str) -> None:
    POLICY.check({name: bound})
    with pytest.raises(ApiError) as refused:
        POLICY.check({name: beyond})
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert all(part in refused.value.message for part in (name, bound, beyond))
    assert bound in POLICY.sentence(name)


def test_what_is_for_operators_is_refused_and_may_be_taken_back() -> None:
    for name in ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"):
        POLICY.check({name: ""})
        with pytest.raises(ApiError) as refused:
            POLICY.check({name: "*"})
        assert refused.value.code is ErrorCode.POLICY_VIOLATION
        assert POLICY.sentence(name)


def test_the_durable_profile_and_any_retention_are_free() -> None:
    POLICY.check({"flush.messages": "1", "retention.ms": "-1", "retention.bytes": "0", "cleanup.policy": "compact"})
    assert POLICY.sentence("retention.ms") == ""


def test_a_plan_may_limit_retention_and_for_ever_is_more_than_any_limit() -> None:
    plan = replace(POLICY, ranges={**POLICY.ranges, "retention.ms": Range(3_600_000, 86_400_000)})
    plan.check({"retention.ms": "86400000"})
    for value in ("86400001", "-1", "5"):
        with pytest.raises(ApiError):
            plan.check({"retention.ms": value})


def test_what_brokers_have_as_their_own_default_may_be_set() -> None:
    settings = Settings(log_roll_ms=5_000, log_cleaner_min_cleanable_ratio=0.02, log_segment_bytes=600)
    policy = policy_of(settings)
    policy.check({"segment.ms": "5000", "min.cleanable.dirty.ratio": "0.02"})
    with pytest.raises(ApiError):
        policy.check({"segment.ms": "4999"})
    assert policy.applied(LogConfig(segment_ms=5_000)).rolls_after_ms == 5_000


def test_every_range_is_of_a_number_that_can_be_set_and_holds_its_default() -> None:
    settings = Settings()
    for name, bounds in POLICY.ranges.items():
        for bound in (bounds.least, bounds.most):
            if bound is not None:
                check_overrides([name], {name: str(bound)}, settings)
        assert bounds.problem(float(TOPIC_SETTINGS[name].default_of(settings))) is None
    assert not set(TopicPolicy().refused) - set(TOPIC_SETTINGS)


def test_topics_from_before_there_was_a_floor_are_treated_as_if_they_said_the_floor() -> None:
    asked = {"segment.ms": "1", "index.interval.bytes": "0", "min.cleanable.dirty.ratio": "0", "flush.ms": "1"}
    config = POLICY.applied(LogConfig().with_topic({**asked, "segment.index.bytes": "4", "segment.jitter.ms": "7"}))
    assert (config.rolls_after_ms, config.index_interval_bytes, config.segment_index_bytes) == (600_000, 4_096, 4_096)
    assert (config.min_cleanable_dirty_ratio, config.flush_ms) == (0.1, 1_000)
    compacted = POLICY.applied(LogConfig().with_topic({"cleanup.policy": "compact", "max.compaction.lag.ms": "1"}))
    assert compacted.rolls_after_ms == 600_000
    free = LogConfig()
    assert replace(POLICY.applied(free), least_roll_ms=0) == free
