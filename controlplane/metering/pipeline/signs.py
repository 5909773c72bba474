"""That the usage job's process is there: a moment in the database, every two seconds, by a thread of its own.

The job itself says more (`UsageJob.sign_of_life`), and less often: it asks Kafka before, which may take its time, and says
nothing while Spark comes up. A job whose main thread has not come round for a minute hangs: no sign is given for it. Whether
it gets anywhere is another question, which the moment of its last movement answers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.metering.pipeline.settings import Settings
from controlplane.metering.pipeline.tables import Database

LOG = logging.getLogger(__name__)
EVERY_S = 2.0
HANGS_AFTER_S = 60.0
ENDS_WITHIN_S = 5.0


class Rounds:
    """When the job's main thread came round last. Of this process."""

    def __init__(self) -> None:
        self._at_s = time.monotonic()

    def note(self) -> None:
        """It comes round now."""
        self._at_s = time.monotonic()

    def are_made(self) -> bool:
        """Whether that was not too long ago."""
        return time.monotonic() - self._at_s < HANGS_AFTER_S


ROUNDS = Rounds()


@contextmanager
def given(settings: Settings, every_s: float = EVERY_S) -> Iterator[None]:
    """Signs of life, from now until the end."""
    ROUNDS.note()
    is_over = threading.Event()
    thread = threading.Thread(target=_give, args=(settings, is_over, every_s), name="signs of life", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(ENDS_WITHIN_S)


def _give(settings: Settings, is_over: threading.Event, every_s: float) -> None:
    database = Database(settings.environment, cluster=settings.cluster, patience_s=every_s)
    try:
        while not is_over.is_set():
            if ROUNDS.are_made():
                _sign(database)
            is_over.wait(every_s)
    finally:
        database.close()


def _sign(database: Database) -> None:
    try:
        with database.transaction() as cursor:
            database.still_there(cursor, now_ms=int(time.time() * 1000))
    except Exception as error:  # noqa: BLE001  # drivers have error trees of their own; it is tried again
        LOG.warning("the database does not take a sign of life: %s", error)
