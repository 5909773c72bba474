"""That the usage job's process is there: a moment in the database, every two seconds, by a thread of its own.

The job itself says more (`UsageJob.sign_of_life`), and less often: it asks Kafka before, which may take its time, and says
nothing while Spark comes up. Whether it gets anywhere is another question, which the moment of its last movement answers.
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


@contextmanager
def given(settings: Settings, every_s: float = EVERY_S) -> Iterator[None]:
    """Signs of life, until the end."""
    is_over = threading.Event()
    thread = threading.Thread(target=_give, args=(settings, is_over, every_s), name="signs of life", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(every_s)


def _give(settings: Settings, is_over: threading.Event, every_s: float) -> None:
    database = Database(settings.environment, cluster=settings.cluster, patience_s=every_s)
    try:
        while not is_over.wait(every_s):
            try:
                with database.transaction() as cursor:
                    database.still_there(cursor, now_ms=int(time.time() * 1000))
            except Exception as error:  # noqa: BLE001  # drivers have error trees of their own; it is tried again
                LOG.warning("the database does not take a sign of life: %s", error)
    finally:
        database.close()
