"""A stack's folder for Spark that is kept from run to run, in `var/spark-of-tests`: what makes starts quick is in it.

Its Kafka source and Delta Lake are fetched once, and its archive of loaded classes halves the starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane.env import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = ROOT / "var" / "spark-of-tests"


@contextlib.contextmanager
def spark_home() -> Iterator[Path]:
    """One that nobody else uses now, without anything of the run before but what makes it quick."""
    for number in range(1, 100):
        folder = KEPT / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder / "metering" / "checkpoint", ignore_errors=True)
            yield folder
            return
    raise AssertionError(f"all of {KEPT} is in use")
