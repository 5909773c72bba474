"""What Spark says of the query while it runs: the end of each batch, and now and then that there was nothing to do.

Spark calls from threads of its own. The last word is kept in one attribute, which the job's thread reads when it writes its
sign of life: no connection is shared, and a database that is away holds up no batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from controlplane.metering.pipeline.positions import Moved


def _now_ms() -> int:
    return int(time.time() * 1000)


class Listener(StreamingQueryListener):
    """`moved` is replaced as a whole, never changed."""

    def __init__(self, now_ms: Callable[[], int] = _now_ms) -> None:
        super().__init__()
        self._now_ms = now_ms
        self.moved = Moved()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """That is no movement yet: of queries that end in their first batch, one begins after the other."""
        last = self.moved
        self.moved = Moved(str(event.runId), last.at_ms or self._now_ms(), last.batch_ms, last.batch_records)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """A batch has ended."""
        progress, run = event.progress, self.moved.run
        if str(progress.runId) == run:  # else a late word of the query before
            self.moved = Moved(run, self._now_ms(), progress.batchDuration, progress.numInputRows)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """There was nothing to read."""
        if str(event.runId) == self.moved.run:
            self.moved = replace(self.moved, at_ms=self._now_ms())

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """The job hears of it itself, and says why."""
