"""A line now and then while Spark works: which commit, what is done, how many of Spark's tasks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_AFTER_S = 1.0
EVERY_S = 5.0

Say = Callable[[str], None]


class Progress:
    """Nothing is said of what is over within a second."""

    def __init__(self, spark: SparkSession, say: Say) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._say = say

    @contextlib.contextmanager
    def of(self, what: str) -> Iterator[None]:
        """While the block runs, "what" and how far it is."""
        over = threading.Event()
        thread = threading.Thread(target=self._tell, args=(what, over), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _tell(self, what: str, over: threading.Event) -> None:
        began = time.monotonic()
        pause = FIRST_AFTER_S
        while not over.wait(pause):
            self._say(f"{what}: {time.monotonic() - began:.0f} s{self._tasks()}")
            pause = EVERY_S

    def _tasks(self) -> str:
        stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
        told = [stage for stage in stages if stage is not None]
        if not told:
            return ""
        return f", {sum(stage.numCompletedTasks for stage in told)} of {sum(stage.numTasks for stage in told)} tasks"
