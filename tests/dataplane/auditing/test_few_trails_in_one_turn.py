"""Very many instances may be audited: once a second all of their trails are looked at, a few in each turn of the loop."""

from __future__ import annotations

from types import SimpleNamespace

from dataplane.auditing.auditing import Auditing
from tests.dataplane.auditing.test_one_trail_fails import Loop, Written, instance


class Turning(Loop):
    """What is to be done soon is done in another turn."""

    def __init__(self):
        super().__init__()
        self.soon = []

    def call_soon(self, callback):
        self.soon.append(callback)


def test_few_begin_to_be_written_in_one_turn_and_all_within_the_round():
    loop, sink = Turning(), Written()
    clock = SimpleNamespace(monotonic=lambda: loop.now, now_ms=lambda: 0)
    auditing = Auditing(SimpleNamespace(loop=loop, clock=clock), 1, sink)
    keys = [f"key{number:05d}" for number in range(10)]
    for key in keys:
        auditing.connected(instance(key), "default", "10.0.0.1", None)
    loop.ring()
    turns = [len(sink.topics)]
    while loop.soon:
        loop.soon.pop()()
        turns.append(len(sink.topics) - sum(turns))
    assert sink.topics == [f"{key}.__sluice_audit" for key in keys]
    assert max(turns) <= 4
    assert loop.timer is not None
    loop.ring()  # nothing is left: they are forgotten, and no timer is needed
    while loop.soon:
        loop.soon.pop()()
    assert loop.timer is None
