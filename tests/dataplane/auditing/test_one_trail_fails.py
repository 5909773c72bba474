"""An error in the records of one instance is reported, and stops neither the records of others nor its own later ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.auditing.auditing import EVERY_S, Auditing
from dataplane.auditing.trail import Trail
from quota.contracts.namespace import InstanceNames


class Loop:
    """Its one timer rings when it is told to; errors go to who told it."""

    def __init__(self):
        self.now, self.timer = 0.0, None

    def call_later(self, delay_s, callback):
        assert self.timer is None
        self.timer = callback
        return SimpleNamespace(cancel=lambda: None)

    def ring(self):
        self.now += EVERY_S
        callback, self.timer = self.timer, None
        callback()


class Written:
    """A sink that takes everything: topics."""

    def __init__(self):
        self.topics = []

    async def write(self, physical, records):
        self.topics += [physical] * len(records)
        return True


def instance(key):
    return SimpleNamespace(names=InstanceNames(key))


def test_the_timer_goes_on_and_the_others_are_written(monkeypatch):
    loop, sink = Loop(), Written()
    clock = SimpleNamespace(monotonic=lambda: loop.now, now_ms=lambda: 0)
    auditing = Auditing(SimpleNamespace(loop=loop, clock=clock), 1, sink)
    real = Trail.turn

    def turn(trail, now):
        if trail is broken:
            raise RuntimeError("planted")
        real(trail, now)

    first, second = instance("aaaaaaaa"), instance("bbbbbbbb")
    auditing.connected(first, "default", "10.0.0.1", None)
    auditing.connected(second, "default", "10.0.0.1", None)
    broken = auditing._trails["aaaaaaaa"][1]
    monkeypatch.setattr(Trail, "turn", turn)
    with pytest.raises(RuntimeError, match="planted"):
        loop.ring()
    loop.ring()
    assert sink.topics == ["bbbbbbbb.__sluice_audit"]
    auditing.connected(first, "default", "10.0.0.1", None)
    loop.ring()
    assert sink.topics[1:] == ["aaaaaaaa.__sluice_audit"]
    loop.ring()
    assert loop.timer is None
