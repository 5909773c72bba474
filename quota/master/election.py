"""Which of the masters is active: whoever holds the ephemeral node ``/sluice/master``.

==========  ============================================================================================================
standby     another one holds the node, or there is no ZooKeeper
active      we hold it: reports are answered with grants of our epoch
suspended   we held it when the connection to ZooKeeper broke: nothing is granted, connections stay. Back to active when
            the session survived; standby when it did not, or when a session timeout has passed
==========  ============================================================================================================

A candidate wins by one transaction: the counter ``/sluice/master_epoch`` (decimal text) goes up by one by compare-and-
set, and the node is created with that epoch in it. So every mastership has an epoch of its own, higher than all before,
and brokers refuse grants of a lower one. Where the answer to the transaction got lost, the node tells: if our session
owns it, we have won. What the node says is `quota.contracts.mastership`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Protocol

from quota.contracts.instance import MASTER_EPOCH_PATH, MASTER_PATH, ContractError
from quota.contracts.mastership import Mastership
from quota.master.zookeeper import Node, ZooKeeper, ZooKeeperConflict, ZooKeeperLost

LOOK_AGAIN_S = 1.0


class Role(Enum):
    """What a master is at the moment; the text above says how it gets there."""

    STANDBY = "standby"
    ACTIVE = "active"
    SUSPENDED = "suspended"


class Outcome(Protocol):
    """Whom the election tells. `won` begins a new mastership, `lost` ends it."""

    def won(self, epoch: int) -> None: ...
    def lost(self) -> None: ...


class Election:
    """Campaigns for as long as `run` runs."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        candidate: Mastership,
        outcome: Outcome,
        *,
        session_timeout_s: float,
        log: Callable[[str], None],
    ) -> None:
        self._zookeeper = zookeeper
        self._candidate = candidate
        self._outcome = outcome
        self._session_timeout_s = session_timeout_s
        self._log = log
        self._wake = asyncio.Event()
        self._states = 0  # how often the session's state has changed
        self._give_up: asyncio.TimerHandle | None = None
        self.role = Role.STANDBY
        self.current: Mastership | None = None
        """The active master as last seen, ourselves included."""
        zookeeper.on_state(self._on_state)

    async def run(self) -> None:
        """Look at the node, take one step, wait for a change."""
        while True:
            self._wake.clear()
            try:
                await self._step()
            except ZooKeeperLost:
                pass  # the state callback has drawn the conclusions; look again
            except ZooKeeperConflict:
                continue
            await self._changed()

    async def _changed(self) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), LOOK_AGAIN_S)
        except TimeoutError:
            return

    async def _step(self) -> None:
        states = self._states
        node = await self._zookeeper.get(MASTER_PATH, self._wake.set)
        if states != self._states:
            self._wake.set()
            return  # the connection broke, or came back, after this answer: it may be out of date
        if node is None:
            self._lose("the node is gone")
            await self._campaign()
            return
        self.current = _legible(node.data)
        if (
            self.current
            and node.ephemeral_owner == self._zookeeper.session_id
            and self.current.id == self._candidate.id
        ):
            self._hold(self.current)
        else:
            self._lose("another master holds the node")

    async def _campaign(self) -> None:
        counter = await self._counter()
        epoch = int(counter.data or b"0") + 1
        mastership = replace(self._candidate, epoch=epoch)
        await self._zookeeper.set_and_create(
            MASTER_EPOCH_PATH, str(epoch).encode(), counter.version, MASTER_PATH, mastership.to_json()
        )
        self._wake.set()  # the next look finds our node, and sets a watch on it

    async def _counter(self) -> Node:
        counter = await self._zookeeper.get(MASTER_EPOCH_PATH)
        if counter is None:
            await self._zookeeper.ensure(MASTER_EPOCH_PATH, b"0")
            raise ZooKeeperConflict("the counter was just made")
        return counter

    def _hold(self, mastership: Mastership) -> None:
        if self._give_up:
            self._give_up.cancel()
            self._give_up = None
        if self.role is Role.STANDBY:
            self._log(f"active, epoch {mastership.epoch}")
            self._outcome.won(mastership.epoch)
        elif self.role is Role.SUSPENDED:
            self._log("the session survived, active again")
        self.role = Role.ACTIVE

    def _lose(self, reason: str) -> None:
        if self._give_up:
            self._give_up.cancel()
            self._give_up = None
        if self.role is not Role.STANDBY:
            self.role = Role.STANDBY
            self._log(f"standby: {reason}")
            self._outcome.lost()

    def _on_state(self, state: str) -> None:
        self._states += 1
        if state == "expired":
            self._lose("the session with ZooKeeper has ended")
        elif state == "suspended" and self.role is Role.ACTIVE:
            self.role = Role.SUSPENDED
            self._log("no connection to ZooKeeper, nothing is granted")
            loop = asyncio.get_running_loop()
            self._give_up = loop.call_later(self._session_timeout_s, self._lose, "ZooKeeper was away too long")
        self._wake.set()


def _legible(data: bytes) -> Mastership | None:
    """None where it is no such document: whoever wrote it holds the node all the same."""
    try:
        return Mastership.from_json(data)
    except ContractError:
        return None
