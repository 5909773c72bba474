"""The controller as the rest of a broker sees it: stands for election, and passes requests on to its term of office.

Election: /controller is ephemeral, whoever creates it is the controller; the same multi raises /controller_epoch with a
compare-and-set, and the version of that node fences every write of the term (`store`). A broker that finds /controller
taken waits for its watch.

One's own /controller without a term behind it is deleted and contested again: it is left by an election whose answer
was lost, or by a term that ended on an error while the session lived on. So the node can never stand for nobody
(KAFKA-13407).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from dataplane.cluster.paths import CONTROLLER, CONTROLLER_EPOCH, BrokerAddress, controller_json
from dataplane.cluster.watching import RETRY_S
from dataplane.controller.channel import Call, Key
from dataplane.controller.context import Partition
from dataplane.controller.decisions.creation import (
    MorePartitions,
    NewTopic,
    TopicOutcome,
)
from dataplane.controller.events import TermEndedError
from dataplane.controller.operators.reassignments import Outcomes
from dataplane.controller.operators.requested_elections import ElectionType
from dataplane.controller.store import Store
from dataplane.controller.term import Rules, Term
from dataplane.doors import (
    BadVersionError,
    Create,
    Doors,
    NodeExistsError,
    NoNodeError,
    SetData,
    ZooKeeperError,
)
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages import control
from dataplane.records.steps import Pace, Steps
from dataplane.tasks import Future, Task, either, in_steps, sleep
from dataplane.throttle.mutations import FREE, Toll

__all__ = ["Controller", "MorePartitions", "NewTopic", "Rules", "TopicOutcome"]

logger = logging.getLogger(__name__)
_LONGEST_WAIT_S = 300.0  # clients may ask for weeks
_OUTCOMES_PER_TURN = 50
_NOT_CONTROLLER = "this broker is not the controller"
_NOT_HEARD = "not every broker has heard of it in time"
T = TypeVar("T")


class Controller:
    """Always there; active on one broker of the cluster."""

    def __init__(self, doors: Doors, broker_id: int, call: Call, rules: Rules | None = None) -> None:
        self._doors = doors
        self._broker_id = broker_id
        self._call = call
        self._rules = rules or Rules()
        self._term: Term | None = None
        self._task: Task[None] | None = None
        self._stopped = False
        doors.zookeeper.on_session(self._on_session)

    def start(self) -> None:
        """Stand for election, now and after every new session."""
        if self._task is None and not self._stopped:
            self._task = Task(self._campaign(), "controller election")

    def stop(self) -> None:
        """End the term and never stand for election again. /controller goes with the session."""
        self._stopped = True
        if self._term is not None:
            self._term.end("the broker stops")
        if self._task is not None:
            self._task.cancel()

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller (it may still be loading: requests wait for that)."""
        return self._term is not None

    @property
    def epoch(self) -> int:
        """Of the present term; -1 when not active."""
        return -1 if self._term is None else self._term.epoch

    def broker_address(self, broker_id: int) -> BrokerAddress | None:
        """Where a registered broker is, as the active controller knows it: before anybody's metadata does."""
        broker = None if self._term is None else self._term.context.brokers.get(broker_id)
        return None if broker is None else broker.address

    # --- requests -----------------------------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Sequence[NewTopic], timeout_s: float = 30.0, *, validate_only: bool = False, toll: Toll = FREE
    ) -> list[TopicOutcome]:
        """Create topics; answers when every live broker knows them: an outcome for each, in their order.

        REQUEST_TIMED_OUT: they are there, or will be. Raises ApiError NOT_CONTROLLER.
        """
        return await self._decided(
            lambda term: term.create_topics(topics, toll, validate_only=validate_only), timeout_s, validate_only, toll
        )

    async def create_partitions(
        self,
        topics: Sequence[MorePartitions],
        timeout_s: float = 30.0,
        *,
        validate_only: bool = False,
        toll: Toll = FREE,
    ) -> list[TopicOutcome]:
        """Let topics grow; answers as `create_topics`."""
        return await self._decided(
            lambda term: term.create_partitions(topics, toll, validate_only=validate_only),
            timeout_s,
            validate_only,
            toll,
        )

    async def _decided(
        self, ask: Callable[[Term], Future[list[TopicOutcome]]], timeout_s: float, validate_only: bool, toll: Toll
    ) -> list[TopicOutcome]:
        """What the present term decides, when every live broker knows it."""
        term, deadline = self._term_in_office(), self._deadline(timeout_s)
        outcomes = await _in_office(ask(term))
        toll.decided()
        if not await either(term.settled(), deadline) and not validate_only:
            await in_steps(_timed_out(outcomes, {}), term.pause)
        return outcomes

    async def delete_topics(
        self, names: Sequence[str], timeout_s: float = 30.0, *, toll: Toll = FREE
    ) -> list[TopicOutcome]:
        """Delete topics, each named once; answers when they have gone, or wait only for brokers that are away.

        Outcomes and errors as `create_topics`.
        """
        term, deadline = self._term_in_office(), self._deadline(timeout_s)
        outcomes = await _in_office(term.delete_topics(names, toll))
        toll.decided()
        in_time: dict[str, bool] = {}
        for place, outcome in enumerate(outcomes, 1):
            if place % _OUTCOMES_PER_TURN == 0:
                await term.pause()
            if outcome.error is ErrorCode.NONE:
                in_time[outcome.name] = await either(term.deleted(outcome.name), deadline)
        if not all(in_time.values()):
            await in_steps(_timed_out(outcomes, in_time), term.pause)
        return outcomes

    async def reassign(self, wanted: Mapping[Key, Sequence[int] | None]) -> Outcomes | None:
        """Let replicas move, or (None) go back. Answers when it has begun; None: this broker is not the controller."""
        return await self._asked(lambda term: term.reassign(wanted))

    async def reassigned(self) -> list[Partition] | None:
        """Partitions whose replicas are on their way. None: this broker is not the controller."""
        return await self._asked(lambda term: term.reassigned())

    async def elect(self, keys: Sequence[Key] | None, kind: ElectionType, timeout_s: float) -> Outcomes | None:
        """Leaders that somebody wants; answers when every live broker knows them. None: not the controller."""
        term, deadline = self._term, self._deadline(timeout_s)
        outcomes = await self._asked(lambda term: term.elect(keys, kind))
        if outcomes is None or term is None or await either(term.settled(), deadline):
            return outcomes
        late = ApiError(ErrorCode.REQUEST_TIMED_OUT, _NOT_HEARD)
        return {key: refusal or late for key, refusal in outcomes.items()}

    async def _asked(self, ask: Callable[[Term], Future[T]]) -> T | None:
        if self._term is None:
            return None
        try:
            return await ask(self._term)
        except TermEndedError:
            return None

    def take_rules(self, rules: Rules) -> None:
        """Settings have changed while the broker runs."""
        self._rules = rules
        if self._term is not None:
            self._term.take_rules(rules)

    def topic_config_changed(self, topic: str) -> None:
        """The overrides of a topic have changed."""
        if self._term is not None:
            self._term.topic_config_changed(topic)

    def notifications_seen(self, count: int) -> None:
        """So many notifications of changed configurations are there."""
        if self._term is not None:
            self._term.notifications_seen(count)

    async def alter_partition(
        self, request: control.AlterPartitionRequest, version: int
    ) -> control.AlterPartitionResponse:
        """A leader's proposal of ISRs."""
        if self._term is not None:
            try:
                return await self._term.alter_partition(request, version)
            except TermEndedError as error:
                logger.debug("alter partition: %s", error)
        return control.AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)

    async def controlled_shutdown(
        self, request: control.ControlledShutdownRequest
    ) -> control.ControlledShutdownResponse:
        """A broker is about to stop: its leadership moves first."""
        if self._term is None:
            return control.ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER)
        try:
            left = await self._term.controlled_shutdown(request.broker_id, request.broker_epoch)
        except TermEndedError:
            return control.ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER)
        if isinstance(left, ErrorCode):
            return control.ControlledShutdownResponse(error_code=left)
        remaining = tuple(control.RemainingPartition(partition.topic, partition.index) for partition in left)
        return control.ControlledShutdownResponse(remaining_partitions=remaining)

    def topic_name(self, topic_id: UUID) -> str | None:
        """Of a topic that the active controller knows."""
        topic = None if self._term is None else self._term.context.topic_of_id(topic_id)
        return None if topic is None else topic.name

    # --- election -----------------------------------------------------------------------------------------------------

    def _on_session(self, state: str) -> None:
        """Without a connection nothing can be decided, and the session may be over already."""
        if state in ("suspended", "expired") and self._term is not None:
            self._term.end(f"the ZooKeeper session is {state}")

    async def _campaign(self) -> None:
        while not self._stopped:
            try:
                term = await self._stand()
            except ZooKeeperError as error:
                logger.debug("election: %s", error)
                await sleep(self._doors.loop, RETRY_S)
                continue
            except (
                ValueError
            ) as error:  # not a number: this broker must go on standing for election, or it would never lead again
                logger.warning("election: %s", error)
                await sleep(self._doors.loop, RETRY_S)
                continue
            if term is not None:
                term.begin()
                reason = await term.ended
                self._term = None
                logger.info("controller of epoch %d has ended: %s", term.epoch, reason)
                await sleep(self._doors.loop, RETRY_S)

    async def _stand(self) -> Term | None:
        """A term of office; None: look again."""
        zookeeper = self._doors.zookeeper
        gone: Future[None] = Future()
        stat = await zookeeper.exists(CONTROLLER, lambda: gone.resolve(None))
        if stat is not None:
            if stat.ephemeral_owner == zookeeper.session_id():
                await zookeeper.delete(CONTROLLER, stat.version)
            else:
                await gone
            return None
        epoch, version = await self._epoch()
        session = zookeeper.session_id()
        try:
            results = await zookeeper.multi(
                [
                    Create(CONTROLLER, controller_json(self._broker_id, self._doors.clock.now_ms()), ephemeral=True),
                    SetData(CONTROLLER_EPOCH, str(epoch + 1).encode(), version),
                ]
            )
        except (NodeExistsError, BadVersionError):
            return None
        if zookeeper.session_id() != session:
            return None
        store = Store(zookeeper, epoch + 1, results[1].version)
        self._term = Term(self._doors, self._broker_id, store, self._call, self._rules)
        return self._term

    async def _epoch(self) -> tuple[int, int]:
        """The last controller's epoch, and the version of its node."""
        zookeeper = self._doors.zookeeper
        try:
            data, stat = await zookeeper.get(CONTROLLER_EPOCH)
        except NoNodeError:
            with suppress(NodeExistsError):
                await zookeeper.create(CONTROLLER_EPOCH, b"0")
            data, stat = await zookeeper.get(CONTROLLER_EPOCH)
        return int(data), stat.version

    def _term_in_office(self) -> Term:
        """Raises ApiError: another broker's is."""
        if self._term is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, _NOT_CONTROLLER)
        return self._term

    def _deadline(self, timeout_s: float) -> Future[None]:
        return sleep(self._doors.loop, min(timeout_s, _LONGEST_WAIT_S))


async def _in_office(asked: Future[T]) -> T:
    """What a term answers. Raises ApiError NOT_CONTROLLER where it ends before."""
    try:
        return await asked
    except TermEndedError:
        raise ApiError(ErrorCode.NOT_CONTROLLER, _NOT_CONTROLLER) from None


def _timed_out(outcomes: list[TopicOutcome], in_time: Mapping[str, bool]) -> Steps[None]:
    """Of what was decided, what is not known by everybody yet says so, in its place."""
    pace = Pace()
    for place, outcome in enumerate(outcomes):
        if pace.over(2):
            yield None
        if outcome.error is ErrorCode.NONE and not in_time.get(outcome.name):
            outcomes[place] = TopicOutcome(outcome.name, ErrorCode.REQUEST_TIMED_OUT, _NOT_HEARD)
