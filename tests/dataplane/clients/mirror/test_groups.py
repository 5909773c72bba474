"""Which offsets groups are given in the target. What brokers say of them is in tests/integration/test_mirror.py."""

from __future__ import annotations

import pytest

from dataplane.clients.errors import BrokerError
from dataplane.clients.mirror import groups
from dataplane.clients.mirror.config import parse_config
from dataplane.clients.mirror.copying import Copier
from dataplane.clients.mirror.groups import translate_groups
from dataplane.clients.mirror.offset_map import OffsetMap
from dataplane.clients.mirror.progress import Progress
from dataplane.protocol.errors import ErrorCode

OLD, NEW = "the source", "the target"


class World:
    """Groups of both clusters; offsets by group and place."""

    def __init__(self, **source):
        document = {
            "target": {"name": "new", "bootstrap": "h:1"},
            "sources": [{"name": "old", "bootstrap": "h:2", "topics": ".*", "prefix": "old.", **source}],
        }
        config = parse_config(document)
        self.copier = Copier(config, config.sources[0], OLD, NEW)
        self.committed = {OLD: {}, NEW: {}}
        self.refused = {}

    def of(self, cluster, group):
        if cluster == OLD and group in self.refused:
            raise BrokerError(self.refused[group], "offsets")
        return self.committed[cluster].get(group, {})

    def commit(self, cluster, group, offsets):
        if group in self.refused:
            raise BrokerError(self.refused[group], "commit")
        self.committed[cluster].setdefault(group, {}).update(offsets)


@pytest.fixture
def world(monkeypatch):
    made = World(groups="a,b")
    monkeypatch.setattr(groups, "_groups", lambda cluster: sorted(made.committed[cluster]))
    monkeypatch.setattr(groups, "committed", made.of)
    monkeypatch.setattr(groups, "_commit", made.commit)
    return made


def copied(*segments, next_target=0):
    return Progress(0, next_target, OffsetMap(segments))


def test_offsets_are_translated_and_only_forwards(world):
    world.copier.progress["t", 0] = copied((20, 5, 10))
    world.committed[OLD]["a"] = {("t", 0): 23, ("other", 0): 3}
    assert translate_groups(world.copier) == 1
    assert world.committed[NEW] == {"a": {("old.t", 0): 8}}
    world.committed[OLD]["a"] = {("t", 0): 21}
    assert translate_groups(world.copier) == 0
    assert world.committed[NEW] == {"a": {("old.t", 0): 8}}


def test_who_stands_before_all_that_was_copied_begins_with_it(world):
    world.copier.progress["t", 0] = copied((20, 5, 10))
    world.copier.progress["t", 1] = copied(next_target=7)  # where nothing was copied yet
    world.committed[OLD]["a"] = {("t", 0): 3, ("t", 1): 100}
    translate_groups(world.copier)
    assert world.committed[NEW] == {"a": {("old.t", 0): 5, ("old.t", 1): 7}}


def test_only_groups_that_were_asked_for(world):
    world.copier.progress["t", 0] = copied((20, 5, 10))
    world.committed[OLD] = {"b": {("t", 0): 20}, "c": {("t", 0): 20}}
    translate_groups(world.copier)
    assert list(world.committed[NEW]) == ["b"]


def test_a_group_that_is_refused_keeps_no_other_back(world, caplog):
    world.copier.progress["t", 0] = copied((20, 5, 10))
    world.committed[OLD] = {"a": {("t", 0): 20}, "b": {("t", 0): 21}}
    world.refused["a"] = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert translate_groups(world.copier) == 1
    assert world.committed[NEW] == {"b": {("old.t", 0): 6}}
    assert "GROUP_AUTHORIZATION_FAILED" in caplog.text


def test_where_no_groups_are_wanted_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(groups, "_groups", None)
    assert translate_groups(World().copier) == 0
