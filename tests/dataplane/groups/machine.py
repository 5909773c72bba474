"""A group without a coordinator: events go in by hand, and the log says yes at once or when told to."""

from dataclasses import replace

from dataplane.coordination.effects import CancelTimer, Gradually, Reply, SetTimer, Store
from dataplane.groups.classic.events import (
    AssignmentStored,
    Heartbeat,
    Join,
    Leave,
    Sync,
)
from dataplane.groups.classic.model import Group
from dataplane.groups.classic.state import handle
from dataplane.groups.settings import GroupSettings
from dataplane.protocol.errors import ErrorCode

RANGE = (("range", b"topics"),)
NO_DELAY = GroupSettings(group_initial_rebalance_delay_ms=0)


def one_by_one(effects):
    """With those that are carried out gradually in their places."""
    for effect in effects:
        yield from effect.effects() if isinstance(effect, Gradually) else (effect,)


class Machine:
    """Keeps the group, the answers by token, the running timers, and what was stored."""

    def __init__(self, settings=NO_DELAY):
        self.settings = settings
        self.group = Group("g")
        self.now_ms = 1_000
        self.replies = {}
        self.timers = {}
        self.stores = []  # waiting for the log
        self.stored = []  # values committed
        self.log_is_slow = False
        self._tokens = iter(range(10_000))

    def do(self, event):
        self.group, effects = handle(self.group, event, self.settings, self.now_ms)
        for effect in one_by_one(effects):
            if isinstance(effect, Reply):
                assert effect.token not in self.replies, "a request was answered twice"
                self.replies[effect.token] = effect.result
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.name, None)
            else:
                assert isinstance(effect, Store)
                self.stores.append(effect)
        if not self.log_is_slow:
            self.commit()

    def commit(self, error=ErrorCode.NONE):
        while self.stores:
            store = self.stores.pop(0)
            if error == ErrorCode.NONE:
                self.stored.append(store.value)
            self.do(replace(store.then, error=error))

    def ring(self, name):
        self.do(self.timers.pop(name).event)

    def join(self, member_id="", *, new_id="", protocols=RANGE, **more):
        token = next(self._tokens)
        more = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, **more}
        self.do(Join(member_id, "consumer", protocols, new_member_id=new_id, token=token, **more))
        return token

    def sync(self, member_id, generation=None, **more):
        token = next(self._tokens)
        self.do(Sync(self.group.generation if generation is None else generation, member_id, token=token, **more))
        return token

    def heartbeat(self, member_id, generation=None, instance_id=None):
        token = next(self._tokens)
        generation = self.group.generation if generation is None else generation
        self.do(Heartbeat(generation, member_id, instance_id, token))
        return self.replies[token].error

    def leave(self, *members):
        token = next(self._tokens)
        self.do(Leave(tuple(m if isinstance(m, tuple) else (m, None) for m in members), token))
        return self.replies[token]

    def error(self, token):
        return self.replies[token].error

    def waits(self, token):
        return token not in self.replies

    def stable(self, *member_ids, **more):
        """A group of these members in its first common generation, each assigned its own name."""
        tokens = [self.join(new_id=member_id, **more) for member_id in member_ids]
        self.ring("join")
        assert all(self.error(token) == ErrorCode.NONE for token in tokens)
        for member_id in member_ids:
            self.sync(member_id, assignments={m: m.encode() for m in member_ids})
        assert self.group.state.value == "Stable"
        return self


__all__ = ["NO_DELAY", "RANGE", "AssignmentStored", "Machine", "one_by_one"]
