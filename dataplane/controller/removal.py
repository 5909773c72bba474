"""Topics that go: noted, begun (`deletion` knows how far each replica is), and forgotten when nothing is left of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dataplane.controller.channel import Key
from dataplane.controller.context import Context
from dataplane.controller.decisions.creation import TopicOutcome
from dataplane.controller.deletion import Deletions
from dataplane.controller.operators.reassignments import Reassignments
from dataplane.controller.store import Store
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import Future
from dataplane.throttle.mutations import Toll


class Removal:
    """Of one term of office. Its coroutines are events of the controller, or parts of one."""

    def __init__(
        self,
        context: Context,
        store: Store,
        deletions: Deletions,
        reassignments: Reassignments,
        pause: Callable[[], Future[None]],
    ) -> None:
        self._context = context
        self._store = store
        self._deletions = deletions
        self._reassignments = reassignments
        self._pause = pause  # until the next turn of the loop

    async def delete(self, names: Sequence[str], toll: Toll) -> list[TopicOutcome]:
        """Somebody asks for it."""
        refused: dict[str, TopicOutcome] = {}
        begun: list[str] = []
        for name in dict.fromkeys(names):
            try:
                topic = self._context.topics.get(name)
                if topic is None:
                    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist")
                if name not in self._deletions:
                    toll.pay(len(topic.partitions))
                begun.append(name)
            except ApiError as refusal:
                refused[name] = TopicOutcome(name, refusal.code, refusal.message)
        if begun:
            await self._store.doom(begun)
            await self.begin(begun)
        return [refused.get(name) or TopicOutcome(name) for name in names]

    async def take_up_notes(self) -> None:
        """Read anew: a name of the watch's list may be that of a topic that has gone since, and been made again."""
        await self.begin(await self._store.doomed())

    async def begin(self, names: Iterable[str]) -> None:
        """Begin, or begin again, what the notes say."""
        for name in names:
            topic = self._context.topics.get(name)
            if topic is None:
                await self._store.forget_topic(name)  # nothing is left but the note, or configurations
            else:
                await self._deletions.begin(topic)
                await self._finish_if_removed(name)
            await self._pause()  # a topic may have very many partitions

    async def stopped(self, broker_id: int, removed: Iterable[Key], refused: Iterable[Key]) -> None:
        """A broker's answer to StopReplica."""
        for name in self._deletions.stopped(broker_id, removed, refused):
            await self._finish_if_removed(name)

    async def _finish_if_removed(self, name: str) -> None:
        if self._deletions.removed(name):
            await self._store.forget_topic(name)
            self._context.remove_topic(name)
            self._deletions.end(name)
            await self._reassignments.forget(name)
