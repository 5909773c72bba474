"""Tables of loads that were deleted, as files of the runner's machine: how many bytes they have; removed, if that is asked for.

One that is removed is removed once more each half minute for as long as a load may run that was taken for dead: it may write the
folder anew. Where folders are in another store (`hdfs:`) their bytes are not known, and operators remove them.
"""

from __future__ import annotations

import logging
import os
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

from controlplane.lake.request import KEPT_FOR_HOURS
from controlplane.loads.destinations import table_of
from controlplane.loads.models import KeptTable

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from django.db.models import QuerySet

LOG = logging.getLogger("sluice.loads")
WATCHED = timedelta(hours=KEPT_FOR_HOURS)
"""After a removal was asked for."""


def tend(now: datetime) -> None:
    """Count and remove."""
    for table in _tables().exclude(removed_at=None):
        _remove(table, now)
    for table in _tables().filter(byte_count=None, removed_at=None):
        folder = _folder(table)
        if folder is not None and folder.is_dir():
            _tables().filter(pk=table.pk).update(byte_count=bytes_of(folder))


def bytes_of(folder: Path) -> int:
    """Of all files below."""
    found = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118  # as walk has it, of many files
            except FileNotFoundError:
                continue
    return found


def _remove(table: KeptTable, now: datetime) -> None:
    folder = _folder(table)
    if (
        folder is None or not folder.parents[2].is_dir()
    ):  # the root: without it the folders are elsewhere, or not there now
        return
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)  # what is left is found again
        LOG.info("the table of %s, which was deleted, is removed", table.pk)
    elif table.removed_at is not None and now >= table.removed_at + WATCHED:
        table.delete()


def _folder(table: KeptTable) -> Path | None:
    """On this machine; None: it is not, or not where `destinations.folder_uri` puts a load's."""
    folder = table_of(table.folder)
    if folder is None or folder.parts[-3:] != (table.organisation_id, table.instance_id, table.pk):
        return None
    return folder


def _tables() -> QuerySet[KeptTable]:
    return KeptTable.objects.unscoped("the runner serves all")
