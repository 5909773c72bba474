"""A running mirror: a thread for each source, which copies, writes checkpoints, and now and then follows topics and groups.

Whatever fails is tried again after a pause: a mirror ends when it is stopped. `stop` writes a last checkpoint.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.errors import ClientError
from dataplane.clients.mirror import admin
from dataplane.clients.mirror.checkpoints import Checkpoint, CheckpointLog, Key
from dataplane.clients.mirror.config import MirrorConfig, Source
from dataplane.clients.mirror.copying import Copier
from dataplane.clients.mirror.groups import translate_groups
from dataplane.clients.mirror.metrics import MetricsServer, Row
from dataplane.clients.mirror.topics import Claims, TopicSync

LOG = logging.getLogger(__name__)
_IDLE_S = 0.05
_AGAIN_S = 0.5
_BACKOFF = Backoff(60, 500)


class Mirror:
    """Runs when made. `metrics_port` is where metrics are, 0 where they are not wanted."""

    def __init__(self, config: MirrorConfig) -> None:
        self._stopping = threading.Event()
        claims = Claims()
        self._workers = [_Worker(config, source, claims, self._stopping) for source in config.sources]
        self._metrics = _metrics(config, self.rows)
        for worker in self._workers:
            worker.thread.start()

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

    def __init__(self, config: MirrorConfig, source: Source, claims: Claims, stopping: threading.Event) -> None:
        self._config = config
        self._source = source
        self._stopping = stopping
        self._from = Cluster(source.settings, lambda: source.bootstrap)
        self._to = Cluster(config.target.settings, lambda: config.target.bootstrap)
        self._copier = Copier(config, source, self._from, self._to)
        self._topics = TopicSync(source, config.target, self._from, self._to, claims)
        self._log = CheckpointLog(self._to, config.target.checkpoint_topic, _BACKOFF)
        self._written: dict[Key, Checkpoint] = {}
        self.thread = threading.Thread(target=self._run, name=f"mirror-{source.name}", daemon=True)

    def rows(self) -> list[Row]:
        """How far each partition is."""
        return [
            Row(
                self._source.name,
                self._source.prefix + topic,
                partition,
                max(0, one.end - one.next_source),
                one.next_source,
                one.next_target,
                one.copied,
                one.copied_bytes,
            )
            for (topic, partition), one in dict(self._copier.progress).items()
        ]

    def _run(self) -> None:
        sync_at = checkpoint_at = 0.0
        known: dict[Key, Checkpoint] | None = None
        while not self._stopping.is_set():
            try:
                if known is None:
                    known = self._checkpoints()
                now = time.monotonic()
                if now >= sync_at:
                    self._copier.take_up(self._topics.run(), known)
                    translate_groups(self._copier)
                    sync_at = now + self._config.sync_s
                copied = self._copier.step()
                if now >= checkpoint_at:
                    self._write()
                    checkpoint_at = now + self._config.checkpoint_s
                if not copied:
                    self._stopping.wait(_IDLE_S)
            except ClientError as error:
                LOG.warning("%s: %s", self._source.name, error)
                self._stopping.wait(_AGAIN_S)
                self._refresh()
        self._finish()

    def _checkpoints(self) -> dict[Key, Checkpoint]:
        topic = self._config.target.checkpoint_topic
        self._to.refresh((topic,))
        admin.create(self._to, topic, 1, self._config.target.replication_factor, {"cleanup.policy": "compact"})
        found = self._log.read()
        self._written = {key: one for key, one in found.items() if key.source == self._source.name}
        return dict(self._written)

    def _write(self) -> None:
        """After the data: what is in the log is in the target."""
        now = {
            Key(self._source.name, topic, partition): one.checkpoint()
            for (topic, partition), one in self._copier.progress.items()
        }
        changed = {key: one for key, one in now.items() if self._written.get(key) != one}
        if changed:
            self._log.write(changed)
            self._written.update(changed)

    def _refresh(self) -> None:
        _quietly(lambda: self._from.refresh(None))
        _quietly(lambda: self._to.refresh(None))

    def _finish(self) -> None:
        _quietly(self._write)
        _quietly(lambda: translate_groups(self._copier))
        self._from.close()
        self._to.close()


def _metrics(config: MirrorConfig, rows: Callable[[], list[Row]]) -> MetricsServer | None:
    return MetricsServer(config.metrics_port, rows, config.metrics_host) if config.metrics_port else None


def _quietly(do: Callable[[], object]) -> None:
    try:
        do()
    except ClientError as error:
        LOG.warning("%s", error)
