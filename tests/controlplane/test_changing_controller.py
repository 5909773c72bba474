"""For seconds after a broker's death the cluster refuses what it will soon do: it is asked again, and nothing is done twice."""

from __future__ import annotations

import pytest

from controlplane.core.errors import AlreadyExists, ClusterUnavailable, Invalid, NotFound
from controlplane.kafka import client, patience, topics

from .fakes import FakeAdmin, ManualClock

NAME = "orders"


class Changing(FakeAdmin):
    """Fails `failures` times; `late` failures come after the act was done, as from a controller that dies before it answers."""

    def __init__(self, tree, *, failures=0, late=False):
        super().__init__(tree)
        self.failures, self.late, self.attempts = failures, late, 0

    def _act(self, act):
        self.attempts += 1
        if self.attempts <= self.failures:
            if self.late and self.attempts == 1:
                act()
            raise client.ClusterChanging("the cluster cannot do this now (NOT_CONTROLLER)")
        return act()

    def create(self, name, **members):
        return self._act(lambda: FakeAdmin.create(self, name, **members))

    def delete(self, names):
        return self._act(lambda: FakeAdmin.delete(self, names))

    def grow(self, name, partitions):
        return self._act(lambda: FakeAdmin.grow(self, name, partitions))

    def config_set(self, name, changes):
        return self._act(lambda: FakeAdmin.config_set(self, name, changes))


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def changing(tree, instance, monkeypatch):
    """`changing(...)` puts such a cluster in place."""

    def put(**options):
        made = Changing(tree, **options)
        monkeypatch.setattr(client, "admin", lambda _cluster: made)
        return made

    return put


def create(instance, clock, *, partitions=3, replication_factor=3):
    topics.create(
        instance.cluster.address,
        instance.id,
        NAME,
        partitions=partitions,
        replication_factor=replication_factor,
        config={},
        clock=clock,
    )


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("failures", [1, 3])
def test_a_topic_is_made_once_whether_or_not_an_attempt_was_carried_out(changing, instance, clock, failures, late):
    cluster = changing(failures=failures, late=late)
    create(instance, clock)
    assert len(topics.get(instance.cluster.address, instance.id, NAME).layout) == 3
    assert cluster.attempts == failures + 1
    assert sum(clock.slept) < patience.PATIENCE_S


def test_a_topic_of_that_name_that_was_there_before_is_still_a_conflict(changing, instance, clock):
    cluster = changing()
    create(instance, clock)
    with pytest.raises(AlreadyExists):
        create(instance, clock)
    cluster.attempts, cluster.failures = 0, 1
    with pytest.raises(AlreadyExists):
        create(instance, clock, partitions=4)  # nor is one taken for ours that is not what was asked for


def test_a_topic_that_exists_and_cannot_be_seen_yet_is_waited_for(changing, instance, clock, monkeypatch):
    cluster = changing(failures=1, late=True)
    hidden = [True] * 3
    layout = cluster.layout
    monkeypatch.setattr(cluster, "layout", lambda name: None if hidden and hidden.pop() else layout(name))
    create(instance, clock)
    assert hidden == []


def test_a_topic_is_deleted_and_grown_and_set_in_the_same_way(changing, instance, clock):
    cluster = changing(failures=2, late=True)
    FakeAdmin.create(cluster, f"{instance.id[4:]}.{NAME}", partitions=1, replication_factor=3, config={})
    topics.grow(instance.cluster.address, instance.id, NAME, 4, clock=clock)
    assert topics.get(instance.cluster.address, instance.id, NAME).partitions == 4
    cluster.attempts = 0
    topics.config_set(instance.cluster.address, instance.id, NAME, {"retention.ms": "1000"}, clock=clock)
    assert topics.config(instance.cluster.address, instance.id, NAME) == {"retention.ms": "1000"}
    cluster.attempts = 0
    topics.delete(instance.cluster.address, instance.id, NAME, clock=clock)
    with pytest.raises(NotFound):
        topics.get(instance.cluster.address, instance.id, NAME)
    with pytest.raises(NotFound):
        topics.delete(instance.cluster.address, instance.id, NAME, clock=clock)


def test_patience_has_an_end(changing, instance, clock):
    cluster = changing(failures=1000)
    with pytest.raises(client.ClusterChanging) as raised:
        create(instance, clock)
    assert (raised.value.http_status, raised.value.code) == (503, "cluster_unavailable")
    assert patience.PATIENCE_S - 2 < sum(clock.slept) <= patience.PATIENCE_S
    assert 10 < cluster.attempts < 40


@pytest.mark.parametrize("error", [Invalid("no"), ClusterUnavailable("the cluster does not answer")])
def test_a_refusal_and_a_cluster_that_is_away_are_told_at_once(changing, instance, clock, monkeypatch, error):
    cluster = changing()

    def refuse(*_, **__):
        cluster.attempts += 1
        raise error

    monkeypatch.setattr(cluster, "create", refuse)
    with pytest.raises(type(error)):
        create(instance, clock)
    assert (cluster.attempts, clock.slept) == (1, [])


def test_by_rest_the_caller_notices_nothing(alice, changing, instance, monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.001)
    cluster = changing(failures=2, late=True)
    answer = alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": NAME})
    assert answer.status_code == 201
    assert cluster.attempts == 3
