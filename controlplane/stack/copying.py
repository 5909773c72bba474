"""A copy of the stack's SQLite database, made before a new release changes it. The newest few are kept."""

import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

KEPT = 3


def copied(database: Path, folder: Path, at: datetime) -> Path:
    """Where the copy of a database is now; whoever writes to it meanwhile is not disturbed. Raises OSError, sqlite3.Error."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / f"db-{at:%Y%m%dT%H%M%SZ}.sqlite3"
    partial = copy.with_suffix(".part")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(partial)) as target:
            source.backup(target)
        partial.replace(copy)
    finally:
        partial.unlink(missing_ok=True)
    for old in sorted(folder.glob("db-*.sqlite3"))[:-KEPT]:
        old.unlink()
    return copy
