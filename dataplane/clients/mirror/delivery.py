"""How often a message arrives: exactly once, or at least once. What a run does first, at each checkpoint and at its end.

**Exactly once**, where the target has transactions. One transaction has the messages of all partitions since the last
checkpoint, and the checkpoints: all of it is there, or nothing. Whatever goes wrong in between, `open` has the transaction
ended and goes on from the checkpoints that are there then. Its transactional id is made of the names of source and target: a
second mirror of these names fences the first, which ends (`SupersededError`); both cannot write. One whose transaction took
too long, or was ended for it in the middle, is fenced by the coordinator in the same words, and goes on: the run that began
last stands beside the checkpoints.

**At least once** anywhere else: the checkpoints are written after the messages, and a run begins by looking for what is there
already (`recovery`).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Protocol

from dataplane.clients.errors import ClientError, FencedError
from dataplane.clients.messages import Message, portions
from dataplane.clients.mirror.checkpoints import (
    LARGEST_BATCH,
    Checkpoint,
    CheckpointLog,
    Key,
    Run,
    run_to_message,
    to_message,
)
from dataplane.clients.mirror.config import AT_LEAST_ONCE, EXACTLY_ONCE, MirrorConfig, Source
from dataplane.clients.mirror.copying import Copier
from dataplane.clients.mirror.transacting import TIMEOUT_MS, TransactionalProducer, has_transactions

LOG = logging.getLogger(__name__)
LONGEST_PERIOD_S = TIMEOUT_MS / 4000
"""Of a transaction, whatever the file says: one that is open at its timeout is aborted, and so would be each after it."""


class CannotGoOnError(ClientError):
    """A mirror ends with this: to try again would be of no use."""


class SupersededError(CannotGoOnError):
    """Another mirror of the same names has begun after this one."""


class NoTransactionsError(CannotGoOnError):
    """Exactly once is demanded, and the target has no transactions of the kind that is needed."""


class Delivery(Protocol):
    """Of one source; used by its thread. Methods raise ClientError."""

    kind: str
    period_s: float
    """From one `commit` to the next, at most."""
    checkpoints: dict[Key, Checkpoint]

    @property
    def is_open(self) -> bool:
        """Else `open` is called first."""
        ...

    def open(self) -> None:
        """The copier goes on from what is there."""
        ...

    def commit(self) -> None:
        """What was copied since the last time is there for good, and is known to be."""
        ...

    def close(self) -> None:
        """Nothing is left open."""
        ...


def chosen(config: MirrorConfig, copier: Copier, log: CheckpointLog) -> Delivery:
    """By the file and by what the target has; says so. Raises NoTransactionsError, ClientError where nobody answers."""
    way = f"{copier.source.name} -> {config.target.name}"
    is_able = config.delivery != AT_LEAST_ONCE and has_transactions(copier.to)
    if is_able:
        found = ExactlyOnce(copier, log, transactional_id(config, copier.source))
        LOG.info("%s: exactly once, by transactions that end every %g s", way, found.period_s)
        return found
    if config.delivery == EXACTLY_ONCE:
        raise NoTransactionsError(
            f"{way}: exactly once needs a target with transactions: Apache Kafka since 2.5, or ours"
        )
    why = (
        "as it is set" if config.delivery == AT_LEAST_ONCE else "for the target has no transactions of the kind needed"
    )
    LOG.warning(
        "%s: at least once, %s; after a failure what stands behind the checkpoint is looked at, and what is there not sent again",
        way,
        why,
    )
    return AtLeastOnce(copier, log)


def transactional_id(config: MirrorConfig, source: Source) -> str:
    """Of one source in one target."""
    return f"sluice-mirror.{config.target.name}.{source.name}"


def _changed(copier: Copier, known: dict[Key, Checkpoint], *, is_exact: bool) -> dict[Key, Checkpoint]:
    now = {
        Key(copier.source.name, *place): state.checkpoint(is_exact=is_exact) for place, state in copier.progress.items()
    }
    return {key: one for key, one in now.items() if known.get(key) != one}


def _of(source: str, checkpoints: dict[Key, Checkpoint]) -> dict[Key, Checkpoint]:
    return {key: one for key, one in checkpoints.items() if key.source == source}


class AtLeastOnce:
    """See the file's text."""

    kind = AT_LEAST_ONCE

    def __init__(self, copier: Copier, log: CheckpointLog) -> None:
        self._copier, self._log = copier, log
        self.period_s = copier.config.checkpoint_s
        self.checkpoints: dict[Key, Checkpoint] = {}
        self.is_open = False

    def open(self) -> None:
        """Everything behind the checkpoints is looked at as it comes."""
        self.checkpoints = _of(self._copier.source.name, self._log.read().checkpoints)
        self.is_open = True

    def commit(self) -> None:
        """After the data: what is in the log is in the target."""
        changed = _changed(self._copier, self.checkpoints, is_exact=False)
        if changed:
            self._log.write(changed)
            self.checkpoints.update(changed)

    def close(self) -> None:
        """There is nothing open."""


class ExactlyOnce:
    """See the file's text."""

    kind = EXACTLY_ONCE

    def __init__(self, copier: Copier, log: CheckpointLog, named: str, *, patience_s: float = 20.0) -> None:
        self._copier, self._log = copier, log
        self._producer = TransactionalProducer(copier.to, named, patience_s=patience_s)
        copier.writer = self._producer
        self.period_s = min(LONGEST_PERIOD_S, copier.config.checkpoint_s)
        self._run = Run(copier.source.name, secrets.token_hex(16))
        self._has_begun = False  # the log has our run, and had it as the last one
        self._is_ready = False
        self._last_offset = -1  # the log has acknowledged a message of ours there, of whichever transaction
        self.checkpoints: dict[Key, Checkpoint] = {}

    @property
    def is_open(self) -> bool:
        return self._is_ready and not self._producer.is_broken

    def open(self) -> None:
        """The transaction that was open, of this run or of one before, is over; all is as the checkpoints say.

        Raises SupersededError, ClientError.
        """
        is_again, self._is_ready = self._has_begun, False
        try:
            self._producer.initialise(take_over=not self._has_begun)
        except FencedError:
            self._look_who_is_latest()  # else it was the coordinator, which has ended a transaction of ours
            self._producer.initialise(take_over=True)
        self._begin()
        self.checkpoints = self._look_who_is_latest()
        if is_again:
            self._copier.is_done(committed=False)
        self._copier.rewind(self.checkpoints)
        self._is_ready = True

    def _begin(self) -> None:
        if self._has_begun:
            return
        try:
            self._append([run_to_message(self._run)])
            self._producer.commit()
        except FencedError as error:
            raise self._superseded() from error
        self._has_begun = True

    def _look_who_is_latest(self) -> dict[Key, Checkpoint]:
        known = self._log.read(beyond=self._last_offset)
        if known.runs.get(self._run.source) != self._run.run:
            raise self._superseded()
        return _of(self._run.source, known.checkpoints)

    def _superseded(self) -> SupersededError:
        return SupersededError(
            f"another mirror has begun as {self._producer.transactional_id}: two of the same names cannot run"
        )

    def commit(self) -> None:
        """Messages and checkpoints at once."""
        changed = _changed(self._copier, self.checkpoints, is_exact=True)
        if (
            not changed and not self._producer.is_late
        ):  # one in which all was refused is ended, or the next would be late too
            return
        try:
            self._append([to_message(key, one) for key, one in changed.items()])
            self._producer.commit()
        except ClientError:
            self._producer.give_up()
            raise
        self._copier.is_done(committed=True)
        self.checkpoints.update(changed)

    def _append(self, messages: Sequence[Message]) -> None:
        for some in portions(messages, LARGEST_BATCH):
            self._last_offset = self._producer.append(self._log.place, some) + len(some) - 1

    def close(self) -> None:
        """What was not committed is aborted, so that no reader waits for it."""
        self._is_ready = False
        self._producer.abort()
