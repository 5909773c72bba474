"""What this broker has seen of proposals, on its way to ZooKeeper: a child of each proposal's node.

One timer while there is any proposal. Each time it looks for those whose end has come, and writes the findings of one instance
that have changed, at once if somebody new would be cut off: however many proposals there are and whatever is found, a broker
writes one node in EVERY_S. A proposal
that is gone meanwhile takes no child, so nothing is left behind. When the broker starts again it goes on from what it
has written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Protocol, TypeVar

from dataplane.doors import NodeExistsError, NoNodeError, ZooKeeperError
from dataplane.tasks import Task
from quota.contracts.instance import ContractError
from quota.contracts.proposals import Findings, findings_path

if TYPE_CHECKING:
    from dataplane.doors import Doors, Timer
    from dataplane.tenancy.instance import Instance
    from dataplane.tenancy.shadow import Shadow

T = TypeVar("T")
EVERY_S = 1.0


class InSlices(Protocol):
    """How what is long is done."""

    def __call__(self, steps: Generator[None, None, T]) -> Awaitable[T]: ...


class ShadowReports:
    """Of one broker."""

    def __init__(self, doors: Doors, broker_id: int, in_slices: InSlices) -> None:
        self._doors, self._broker, self._in_slices = doors, broker_id, in_slices
        self._watched: dict[str, Instance] = {}  # those that have a proposal; the one that is written goes to the end
        self._timer: Timer | None = None
        self._is_writing = False

    def stop(self) -> None:
        """What has not been written is not."""
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def watch(self, instance: Instance) -> None:
        """It has a proposal."""
        self._watched[instance.spec.id] = instance
        if self._timer is None:
            self._timer = self._doors.loop.call_later(EVERY_S, self._look)

    async def findings(self, instance_id: str, proposal_id: str) -> Findings:
        """Where to go on: what was written of this proposal, or nothing yet. Raises ZooKeeperError."""
        try:
            data, _ = await self._doors.zookeeper.get(findings_path(instance_id, self._broker))
            found = Findings.from_json(data)
            if found.proposal == proposal_id:
                return found
        except (NoNodeError, ContractError):
            pass
        return Findings(proposal_id, self._doors.clock.now_ms())

    def _look(self) -> None:
        for name, instance in list(self._watched.items()):
            if instance.shadow is not None and instance.shadow.is_over:
                instance.take_shadow(None)
            if instance.shadow is None:
                del self._watched[name]
        self._timer = self._doors.loop.call_later(EVERY_S, self._look) if self._watched else None
        if not self._is_writing:
            for name, instance in self._watched.items():
                if instance.shadow is not None and instance.shadow.is_due():
                    self._watched[name] = self._watched.pop(name)
                    Task(self._write(name, instance.shadow), "findings of a proposal")
                    return

    async def _write(self, name: str, shadow: Shadow) -> None:
        self._is_writing = True
        shadow.told()
        try:
            data = await self._in_slices(shadow.findings.to_json())
            await self._put(findings_path(name, self._broker), data)
        except NoNodeError:
            return  # the proposal is gone, and a change node says so
        except ZooKeeperError:
            shadow.told(is_so=False)
        finally:
            self._is_writing = False

    async def _put(self, path: str, data: bytes) -> None:
        try:
            await self._doors.zookeeper.set(path, data)
        except NoNodeError:
            try:
                await self._doors.zookeeper.create(path, data)
            except NodeExistsError:  # an attempt before it, whose answer was lost
                await self._doors.zookeeper.set(path, data)
