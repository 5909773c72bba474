"""Metadata: what the newest controller said, and nothing that an older one says."""

from __future__ import annotations

from uuid import UUID

import pytest

from dataplane.cluster.metadata import FULL_UPDATE, INCREMENTAL_UPDATE, Metadata
from dataplane.cluster.paths import LEADER_DURING_DELETE, BrokerAddress
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import control

ONE, TWO = UUID(int=1), UUID(int=2)


def _update(
    *partitions: tuple[str, UUID, int, int],
    epoch: int = 1,
    kind: int = INCREMENTAL_UPDATE,
    brokers: tuple[int, ...] = (1, 2),
) -> control.UpdateMetadataRequest:
    return control.UpdateMetadataRequest(
        controller_id=1,
        controller_epoch=epoch,
        type=kind,
        topic_states=tuple(
            control.UpdateMetadataTopicState(
                name,
                topic_id,
                (control.UpdateMetadataPartitionState(partition_index=index, leader=leader, replicas=(1, 2)),),
            )
            for name, topic_id, index, leader in partitions
        ),
        live_brokers=tuple(
            control.UpdateMetadataBroker(
                id=broker, endpoints=(control.UpdateMetadataEndpoint(9000 + broker, "h", "INTERNAL", 2),)
            )
            for broker in brokers
        ),
    )


def test_an_update_adds_and_replaces_partitions() -> None:
    metadata = Metadata()
    assert metadata.apply(_update(("t", ONE, 1, 2), brokers=(2, 1))) is ErrorCode.NONE
    assert metadata.apply(_update(("t", ONE, 0, 1))) is ErrorCode.NONE
    assert list(metadata.partitions("t")) == [0, 1]
    assert (metadata.partition("t", 0).leader, metadata.partition("t", 1).leader) == (1, 2)  # type: ignore[union-attr]
    assert metadata.partition("t", 2) is metadata.partition("u", 0) is None
    assert (metadata.topic_id("t"), metadata.topic_of_id(ONE), metadata.topics()) == (ONE, "t", ["t"])
    assert metadata.alive() == [1, 2]
    assert metadata.brokers[1] == BrokerAddress(1, "h", 9001)


def test_an_older_controller_is_refused_and_changes_nothing() -> None:
    metadata = Metadata()
    metadata.apply(_update(("t", ONE, 0, 1), epoch=2))
    stale = _update(("t", ONE, 0, 2), epoch=1, brokers=(2,))
    assert metadata.apply(stale) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert metadata.partition("t", 0).leader == 1  # type: ignore[union-attr]
    assert metadata.alive() == [1, 2]
    assert not metadata.saw_controller(1, 1)
    assert metadata.saw_controller(1, 2)


def test_a_partition_of_a_deleted_topic_is_forgotten_and_the_topic_with_its_last_one() -> None:
    metadata = Metadata()
    metadata.apply(_update(("t", ONE, 0, 1), ("t", ONE, 1, 1)))
    metadata.apply(_update(("t", ONE, 0, LEADER_DURING_DELETE)))
    assert metadata.topics() == ["t"]
    metadata.apply(_update(("t", ONE, 1, LEADER_DURING_DELETE)))
    assert metadata.topics() == []
    assert metadata.topic_id("t") is metadata.topic_of_id(ONE) is None


def test_a_topic_made_again_under_its_name_has_nothing_of_the_old_one() -> None:
    metadata = Metadata()
    metadata.apply(_update(("t", ONE, 0, 1), ("t", ONE, 1, 1)))
    metadata.apply(_update(("t", TWO, 0, 2)))
    assert list(metadata.partitions("t")) == [0]
    assert (metadata.topic_id("t"), metadata.topic_of_id(ONE)) == (TWO, None)
    metadata.apply(_update(("t", ONE, 0, LEADER_DURING_DELETE)))  # a late word
    assert metadata.partition("t", 0).leader == 2  # type: ignore[union-attr]


def test_a_late_word_on_a_topic_that_has_gone_does_not_bring_it_back() -> None:
    metadata = Metadata()
    metadata.apply(_update(("t", ONE, 0, 1)))
    metadata.apply(_update(("t", ONE, 0, LEADER_DURING_DELETE)))
    metadata.apply(_update(("t", ONE, 0, 1), ("u", TWO, 0, 1)))
    assert metadata.topics() == ["u"]
    metadata.apply(_update(("t", ONE, 0, 1), ("u", TWO, 0, 1), kind=FULL_UPDATE))
    assert metadata.topics() == ["u"]
    assert (metadata.was_deleted(ONE), metadata.was_deleted(TWO)) == (True, False)


def test_a_late_word_on_a_topic_that_has_gone_does_not_replace_the_one_made_again() -> None:
    metadata = Metadata()
    metadata.apply(_update(("t", ONE, 0, 1)))
    metadata.apply(_update(("t", ONE, 0, LEADER_DURING_DELETE)))
    metadata.apply(_update(("t", TWO, 0, 2)))
    metadata.apply(_update(("t", ONE, 0, 1)))
    assert (metadata.topic_id("t"), metadata.topic_of_id(ONE)) == (TWO, None)


def test_a_topic_that_a_full_update_does_not_name_may_be_named_again() -> None:
    metadata = Metadata()
    metadata.apply(_update(("t", ONE, 0, 1)))
    metadata.apply(_update(("u", TWO, 0, 1), kind=FULL_UPDATE))
    metadata.apply(_update(("t", ONE, 0, 1)))
    assert metadata.topics() == ["t", "u"]


def test_of_topics_that_have_gone_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.cluster.metadata._DELETED_REMEMBERED", 2)
    metadata = Metadata()
    for number in (1, 2, 3, 2):
        metadata.apply(_update(("t", UUID(int=number), 0, LEADER_DURING_DELETE)))
    assert [metadata.was_deleted(UUID(int=number)) for number in (1, 2, 3)] == [False, True, True]


def test_a_full_update_forgets_what_it_does_not_name() -> None:
    metadata = Metadata()
    metadata.apply(_update(("gone", ONE, 0, 1)))
    metadata.apply(_update(("t", TWO, 0, 1), epoch=2, kind=FULL_UPDATE))
    assert metadata.topics() == ["t"]
    assert metadata.topic_of_id(ONE) is None


def test_what_a_controller_said_on_an_earlier_connection_is_overtaken_by_what_it_said_on_a_later_one() -> None:
    metadata = Metadata()
    heard = [(1, 5, 3), (1, 5, 3), (1, 5, 4), (1, 5, 3), (2, 6, 1), (1, 5, 2), (2, 6, 0), (1, 6, 0), (2, 6, 1)]
    found = [metadata.is_overtaken(controller, epoch, connection) for controller, epoch, connection in heard]
    # A word of an older controller, or of another of the same epoch, is refused by its epoch.
    assert found == [False, False, False, True, False, False, True, False, False]
