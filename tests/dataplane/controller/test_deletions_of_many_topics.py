"""A controller that is to delete many topics begins with one in each turn of the loop: each may have very many partitions."""

from __future__ import annotations

from types import SimpleNamespace

from dataplane.controller.removal import Removal
from dataplane.tasks import Task, resolved


def test_there_is_a_turn_between_any_two():
    happened: list[str] = []
    topics = {name: SimpleNamespace(name=name) for name in ("a", "b", "c")}

    def pause():
        happened.append("pause")
        return resolved(None)

    deletions = SimpleNamespace(begin=lambda topic: happened.append(topic.name), removed=lambda _: False)
    removal = Removal(SimpleNamespace(topics=topics), None, deletions, None, pause)
    assert Task(removal.begin(topics)).done
    assert happened == ["a", "pause", "b", "pause", "c", "pause"]
