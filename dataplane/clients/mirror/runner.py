"""A running mirror: a thread for each source, which copies, commits, and now and then follows topics and groups.

Whatever fails is tried again after a pause: a mirror ends when it is stopped, or where going on is of no use (`problem`).
`stop` commits what was copied.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.errors import ClientError
from dataplane.clients.mirror.appending import append
from dataplane.clients.mirror.checkpoints import CheckpointLog
from dataplane.clients.mirror.config import MirrorConfig, Source
from dataplane.clients.mirror.copying import Copier
from dataplane.clients.mirror.delivery import CannotGoOnError, Delivery, chosen
from dataplane.clients.mirror.groups import translate_groups
from dataplane.clients.mirror.metrics import MetricsServer, Row
from dataplane.clients.mirror.status import Rates, status_message
from dataplane.clients.mirror.topics import Claims, TopicSync, make_own

LOG = logging.getLogger(__name__)
_IDLE_S = 0.05
_AGAIN_S = 0.5
_BACKOFF = Backoff(60, 500)
_SMALL = {"segment.bytes": str(16 * 2**20), "min.cleanable.dirty.ratio": "0.1"}
"""Of the checkpoints, all of which are read at each start: what is superseded is cleaned soon."""
_SHORT = {"retention.ms": "3600000", "segment.bytes": str(16 * 2**20)}
"""Of what it says of itself: only the last is of interest."""


class Mirror:
    """Runs when made. `on_problem` is called, by any thread, when it cannot go on: then `stop` is still to be called."""

    def __init__(self, config: MirrorConfig, on_problem: Callable[[], object] = lambda: None) -> None:
        self._stopping = threading.Event()
        claims = Claims()
        self._workers = [_Worker(config, source, claims, self._stopping, on_problem) for source in config.sources]
        self._metrics = _metrics(config, self.rows)
        for worker in self._workers:
            worker.thread.start()

    @property
    def problem(self) -> CannotGoOnError | None:
        """Why it cannot go on."""
        return next((worker.problem for worker in self._workers if worker.problem is not None), None)

    def rows(self) -> list[Row]:
        """How far each partition is."""
        return [row for worker in self._workers for row in worker.rows()]

    def stop(self) -> None:
        """What was copied is remembered when this returns."""
        self._stopping.set()
        for worker in self._workers:
            worker.thread.join()
        if self._metrics is not None:
            self._metrics.close()


class _Worker:
    """The thread of one source."""

    def __init__(
        self,
        config: MirrorConfig,
        source: Source,
        claims: Claims,
        stopping: threading.Event,
        on_problem: Callable[[], object],
    ) -> None:
        self._config = config
        self._source = source
        self._stopping = stopping
        self._on_problem = on_problem
        self._from = Cluster(source.settings, lambda: source.bootstrap)
        self._to = Cluster(config.target.settings, lambda: config.target.bootstrap)
        self._copier = Copier(config, source, self._from, self._to)
        self._topics = TopicSync(source, config.target, self._from, self._to, claims)
        self._log = CheckpointLog(self._to, config.target.checkpoint_topic, _BACKOFF)
        self._delivery: Delivery | None = None
        self._sync_at = self._commit_at = 0.0
        self._rates = Rates(time.monotonic())
        self.problem: CannotGoOnError | None = None
        self.thread = threading.Thread(target=self._run, name=f"mirror-{source.name}", daemon=True)

    def rows(self) -> list[Row]:
        """How far each partition is."""
        return self._copier.rows()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._round(self._opened())
            except CannotGoOnError as error:
                self.problem = error
                self._on_problem()
                break
            except ClientError as error:
                LOG.warning("%s: %s", self._source.name, error)
                self._stopping.wait(_AGAIN_S)
                self._refresh()
            except Exception as error:  # a fault of ours: said, and the process ends, so that it is started again
                LOG.exception("%s: it cannot go on", self._source.name)
                self.problem = CannotGoOnError(f"{self._source.name}: {type(error).__name__}: {error}")
                self._on_problem()
                _quietly(lambda: self._close(self._delivery))  # nothing more is committed
                return
        self._finish()

    def _opened(self) -> Delivery:
        if self._delivery is None:
            target = self._config.target
            make_own(
                self._to, target.checkpoint_topic, target.replication_factor, {"cleanup.policy": "compact"}, _SMALL
            )
            if target.status_topic:
                make_own(self._to, target.status_topic, target.replication_factor, {}, _SHORT)
            self._delivery = chosen(self._config, self._copier, self._log)
        if not self._delivery.is_open:
            self._delivery.open()
        return self._delivery

    def _round(self, delivery: Delivery) -> None:
        now = time.monotonic()
        if now >= self._sync_at:
            delivery.commit()  # what is followed, is followed between two transactions
            self._copier.take_up(self._topics.run(), delivery.checkpoints)
            delivery.commit()  # that one begins anew is known before anything of it is copied
            _quietly(lambda: translate_groups(self._copier))  # that fails without holding up what is copied
            self._say_how_it_is(delivery)
            self._sync_at = now + self._config.sync_s
        copied = self._copier.step()
        if self._copier.is_full or time.monotonic() >= self._commit_at:
            delivery.commit()
            self._commit_at = time.monotonic() + delivery.period_s
        if self._copier.is_blind:
            self._stopping.wait(_AGAIN_S)
            _quietly(lambda: self._from.refresh(None))
        elif not copied:
            self._stopping.wait(_IDLE_S)

    def _say_how_it_is(self, delivery: Delivery) -> None:
        """Where nobody takes it, nothing is the worse for it."""
        rows, target = self.rows(), self._config.target
        rates = self._rates.since(rows, time.monotonic())
        if target.status_topic:
            said = status_message(
                rows,
                rates,
                source=self._source.name,
                target=target.name,
                delivery=delivery.kind,
                at_ms=time.time_ns() // 1_000_000,
                every_s=self._config.sync_s,
            )
            _quietly(lambda: append(self._to, (target.status_topic, 0), [said]))

    def _refresh(self) -> None:
        _quietly(lambda: self._from.refresh(None))
        _quietly(lambda: self._to.refresh(None))

    def _finish(self) -> None:
        delivery = self._delivery
        if delivery is not None:
            if delivery.is_open:
                _quietly(delivery.commit)
            if delivery.is_open:
                _quietly(lambda: translate_groups(self._copier))
        self._close(delivery)

    def _close(self, delivery: Delivery | None) -> None:
        if delivery is not None:
            delivery.close()
        self._from.close()
        self._to.close()


def _metrics(config: MirrorConfig, rows: Callable[[], list[Row]]) -> MetricsServer | None:
    return MetricsServer(config.metrics_port, rows, config.metrics_host) if config.metrics_port else None


def _quietly(do: Callable[[], object]) -> None:
    try:
        do()
    except ClientError as error:
        LOG.warning("%s", error)
