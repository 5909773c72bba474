"""Controller mutations have a rate (KIP-599): each partition that is made, added or deleted costs its instance a token.

The worlds here give two tokens a second and save up ten.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dataplane.cluster.paths import topic_path
from dataplane.config import Settings
from dataplane.handlers.admin.partitions import handle_create_partitions
from dataplane.handlers.admin.topics import handle_create_topics, handle_delete_topics
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import topics
from dataplane.tenancy.instance import Instance
from tests.dataplane.controller.test_topic_requests import KEY, SPEC, World

SETTINGS = Settings(controller_mutation_rate=2, controller_quota_window_num=5, controller_quota_window_size_seconds=1)
UNLIMITED = replace(SPEC, limits=replace(SPEC.limits, partitions=None))
EXCEEDED, LATE = ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.REQUEST_TIMED_OUT
OLD, NEW = 5, 6
"""Versions of CreateTopics."""


@pytest.fixture
def world() -> World:
    return World(SETTINGS, UNLIMITED)


def wanted(world: World, *sizes: tuple[str, int], timeout_ms: int = 30_000, **how: Any) -> topics.CreateTopicsRequest:
    names = tuple(topics.CreatableTopic(name, partitions, 1) for name, partitions in sizes)
    return topics.CreateTopicsRequest(topics=names, timeout_ms=timeout_ms, **how)


def create(world: World, *sizes: tuple[str, int], version: int = NEW, internal: bool = False, **how: Any) -> Any:
    """Error codes, and what the answer says of waiting."""
    answer = world.ask(handle_create_topics, wanted(world, *sizes, **how), version, internal=internal)
    return [topic.error_code for topic in answer.topics], answer.throttle_time_ms


def delete(world: World, *names: str, version: int = 5) -> Any:
    request = topics.DeleteTopicsRequest(topic_names=names, timeout_ms=30_000)
    answer = world.ask(handle_delete_topics, request, version)
    return [topic.error_code for topic in answer.responses], answer.throttle_time_ms


def grow(world: World, name: str, count: int, version: int = 3) -> Any:
    more = topics.CreatePartitionsTopic(name, count, None)
    request = topics.CreatePartitionsRequest(topics=(more,), timeout_ms=30_000)
    answer = world.ask(handle_create_partitions, request, version)
    return answer.results[0].error_code, answer.throttle_time_ms


def exists(world: World, name: str) -> bool:
    return world.cluster.exists(topic_path(f"{KEY}.{name}"))


# --- versions that can be told ----------------------------------------------------------------------------------------


def test_what_comes_while_something_is_owed_is_refused_and_told_when_to_come_again(world: World) -> None:
    codes, wait_ms = create(world, ("a", 6), ("b", 7), ("c", 1))
    assert codes == [0, 0, EXCEEDED]
    assert 1000 < wait_ms <= 1500  # three are owed, less what has been paid meanwhile
    assert not exists(world, "c")
    world.cluster.run(wait_ms / 1000)
    assert create(world, ("c", 1)) == ([0], 0)


def test_the_refusal_is_a_sentence_with_the_rate(world: World) -> None:
    create(world, ("a", 20))
    answer = world.ask(handle_create_topics, wanted(world, ("b", 1)), NEW)
    assert answer.topics[0].error_message == (
        "the instance may have 2 partitions a second made, added or deleted: come again in 5.0 s"
    )


def test_growing_and_deleting_cost_what_they_change(world: World) -> None:
    assert create(world, ("a", 4)) == ([0], 0)
    assert grow(world, "a", 8) == (0, 0)  # four more: two are left
    assert delete(world, "a") == ([0], 0)  # eight: six are owed
    assert create(world, ("b", 1))[0] == [EXCEEDED]
    assert delete(world, "a", "b")[0] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    world.cluster.run(3)
    assert create(world, ("b", 20))[0] == [0]
    assert grow(world, "b", 21)[0] == EXCEEDED
    codes, wait_ms = delete(world, "b")
    assert codes == [EXCEEDED]
    assert wait_ms > 0
    assert exists(world, "b")


def test_what_is_refused_for_another_reason_or_only_validated_costs_nothing() -> None:
    world = World(SETTINGS, SPEC)  # 12 partitions at most
    assert create(world, ("a", 13), ("a b", 9), ("b", 9))[0] == [
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        0,
    ]
    for _ in range(5):
        assert create(world, ("b", 9))[0] == [ErrorCode.TOPIC_ALREADY_EXISTS]
        assert create(world, ("c", 3), validate_only=True)[0] == [0]
        assert grow(world, "b", 13)[0] == ErrorCode.POLICY_VIOLATION
        assert delete(world, "never")[0] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert create(world, ("d", 1), ("e", 1)) == ([0, 0], 0)


def test_other_instances_and_the_internal_listener_do_not_pay(world: World) -> None:
    create(world, ("a", 20))
    assert create(world, ("b", 1))[0] == [EXCEEDED]
    assert create(world, (f"{KEY}.c", 30), internal=True) == ([0], 0)
    assert create(world, (f"{KEY}.d", 1), internal=True) == ([0], 0)
    world.instance = Instance(replace(UNLIMITED, id="ins-zzzzzzzz"))
    assert create(world, ("b", 1)) == ([0], 0)


# --- older ones -------------------------------------------------------------------------------------------------------


def test_older_versions_are_let_through_whole_and_the_next_one_waits(world: World) -> None:
    codes, wait_ms = create(world, ("a", 6), ("b", 7), ("c", 1), version=OLD)
    assert codes == [0, 0, 0]
    assert 1500 < wait_ms <= 2000  # four are owed
    before = world.cluster.time.monotonic()
    assert delete(world, "c", version=4)[0] == [0]
    assert world.cluster.time.monotonic() - before > 1.5


def test_older_versions_wait_in_one_line_over_all_connections(world: World) -> None:
    """Each of these could begin as long as nothing is owed, and would not know of the others."""
    began = world.cluster.time.monotonic()
    answers = [world.begin(handle_create_topics, wanted(world, (f"t{n}", 11)), OLD) for n in range(20)]
    world.cluster.run(9)
    made = sum(exists(world, f"t{n}") for n in range(20))
    allowed = 10 + 2 * (world.cluster.time.monotonic() - began) + 11
    assert 11 < made * 11 <= allowed
    world.cluster.run(5)
    codes = [answer.result().topics[0].error_code for answer in answers]
    assert codes == [0] * made + [LATE] * (20 - made)
    assert sum(exists(world, f"t{n}") for n in range(20)) == made


def test_who_asked_for_less_patience_waits_less(world: World) -> None:
    create(world, ("a", 30), version=OLD)
    before = world.cluster.time.monotonic()
    assert create(world, ("b", 1), version=OLD, timeout_ms=500)[0] == [LATE]
    assert world.cluster.time.monotonic() - before < 0.6
    world.cluster.run(10)
    assert create(world, ("b", 1), version=OLD)[0] == [0]


def test_thousands_who_wait_for_nothing_are_answered_and_stand_on_nobodys_stack(world: World) -> None:
    create(world, ("a", 14), version=OLD)
    answers = [world.begin(handle_create_topics, wanted(world, (f"t{n}", 0)), OLD) for n in range(3000)]
    world.cluster.run(3)
    assert {answer.result().topics[0].error_code for answer in answers} == {ErrorCode.INVALID_PARTITIONS}


def test_the_rate_follows_the_setting(world: World) -> None:
    create(world, ("a", 30))
    assert create(world, ("b", 1))[1] > 9_000
    world.settings = replace(SETTINGS, controller_mutation_rate=1000)
    wait_ms = create(world, ("b", 1))[1]
    assert wait_ms <= 20
    world.cluster.run(wait_ms / 1000)
    assert create(world, ("b", 1)) == ([0], 0)
