"""The database of a stack is copied before a new release changes it, and only then."""

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.stack import copying
from controlplane.stack.config import Stores, ensure_encryption_keys, process_environment
from controlplane.stack.layout import PROJECT, Layout

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "db.sqlite3"
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE notes (text)")
        made.execute("INSERT INTO notes VALUES ('before')")
        made.commit()
    return path


def texts(path):
    with closing(sqlite3.connect(path)) as opened:
        return [text for (text,) in opened.execute("SELECT text FROM notes")]


def test_a_copy_holds_what_was_committed_while_others_write(database, tmp_path):
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("INSERT INTO notes VALUES ('in the log of changes')")
        writer.commit()
        writer.execute("INSERT INTO notes VALUES ('not committed')")
        copy = copying.copied(database, tmp_path / "backups", NOON)
        writer.rollback()
    assert copy == tmp_path / "backups" / "db-20261126T120000Z.sqlite3"
    assert texts(copy) == ["before", "in the log of changes"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert [each.name for each in copy.parent.iterdir()] == [copy.name]


def test_the_newest_three_are_kept(database, tmp_path):
    made = [copying.copied(database, tmp_path / "backups", NOON + timedelta(days=day)) for day in range(5)]
    assert sorted((tmp_path / "backups").iterdir()) == made[2:]


def test_what_cannot_be_copied_leaves_nothing_behind(tmp_path):
    (tmp_path / "db.sqlite3").write_bytes(b"no database at all, but long enough to look like a header of one" * 20)
    with pytest.raises(sqlite3.DatabaseError):
        copying.copied(tmp_path / "db.sqlite3", tmp_path / "backups", NOON)
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_stack_migrates_with_a_copy_of_what_was_there(tmp_path):
    """From nothing there is no copy; where nothing is due, none either; before a migration there is one."""
    layout = Layout.of(24_000, tmp_path)
    ensure_encryption_keys(layout)
    environment = process_environment(layout, Stores.of(layout, {}), {"PATH": "/usr/bin:/bin"})

    def migrate(*arguments):
        command = [sys.executable, "manage.py", *(arguments or ("migrate_with_copy",))]
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=110, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    migrate()
    migrate()
    assert not (tmp_path / "backups").exists()
    with closing(sqlite3.connect(tmp_path / "db.sqlite3")) as opened:  # as the release before has left it
        opened.execute("DELETE FROM django_migrations WHERE app = 'mail' AND name = '0002_sealed_with_keys'")
        opened.commit()
    assert "The database as it was" in migrate()
    (copy,) = (tmp_path / "backups").iterdir()
    with closing(sqlite3.connect(copy)) as opened:
        names = {name for (name,) in opened.execute("SELECT name FROM django_migrations WHERE app = 'mail'")}
    assert names == {"0001_initial"}
