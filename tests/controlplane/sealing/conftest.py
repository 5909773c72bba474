"""A file of keys of the test's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import connection

from controlplane.mail.outbox import mail_write
from controlplane.sealing.keyring import drawn

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


class KeysFile:
    """`say` writes what it is to hold."""

    def __init__(self, path) -> None:
        self.path = path
        self.first = drawn()
        self.say(self.first)

    def say(self, *lines: str) -> None:
        self.path.write_text("".join(f"{line}\n" for line in lines))
        self.path.chmod(0o600)


@pytest.fixture
def keys(tmp_path, settings) -> KeysFile:
    made = KeysFile(tmp_path / "encryption.keys")
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, encryption_keys_file=made.path)
    return made


@pytest.fixture
def mails(db, keys):
    """Seven sealed rows."""
    return [mail_write(address="ann@example.com", subject=f"s{n}", body="secret text", at=NOW) for n in range(7)]


def everything() -> str:
    """What a dump of the database shows: every value of every table."""
    shown = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            for row in cursor:
                shown += [
                    bytes(each).decode("latin-1") if isinstance(each, bytes | memoryview) else str(each) for each in row
                ]
    return "\n".join(shown)
