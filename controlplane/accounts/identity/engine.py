"""Sessions in the database, each with whose it is, from where, by which browser, and when it was last seen.

A row is found by a digest of what the cookie says: whoever reads the database, or a copy of it, is signed in as nobody.

Django's own engine with columns beside the data (`SESSION_ENGINE`). What is known of a session is taken from the request that
signs in, and kept in its data, since every save writes the whole row.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.origin import current

SEEN_PRECISION = timedelta(minutes=1)
"""How old `seen_at` may be: writing it on every request would make every read a write."""
BEGUN, ADDRESS, AGENT = "begun_at", "address", "agent"
LONGEST_ADDRESS, LONGEST_AGENT = 64, 300
KEY_DIGITS = 40
"""Of the digest, hexadecimal: what Django's column has room for."""


def stored_key(key: str) -> str:
    """What the row of a session has, whose cookie says `key`. No salt and no slow hash: a key has 165 random bits."""
    return hashlib.sha256(b"sluice session\0" + key.encode(errors="replace")).hexdigest()[:KEY_DIGITS]


class SessionStore(DatabaseStore):
    """A session of the console."""

    @classmethod
    def get_model_class(cls) -> type[Any]:
        """The row, by name: its module imports this one."""
        return apps.get_model("accounts", "Session")

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        """The row to be written, with its columns. A session begins with the sign-in, and not before."""
        now = SYSTEM_CLOCK.now()
        if SESSION_KEY in data and BEGUN not in data:
            origin = current()
            data[BEGUN] = now.isoformat()
            data[ADDRESS], data[AGENT] = origin.address[:LONGEST_ADDRESS], origin.agent[:LONGEST_AGENT]
        row: Any = super().create_model_instance(data)
        row.session_key = stored_key(row.session_key)
        row.user_id = data.get(SESSION_KEY)
        row.begun_at = datetime.fromisoformat(data[BEGUN]) if BEGUN in data else now
        row.address, row.agent = data.get(ADDRESS, ""), data.get(AGENT, "")
        row.seen_at = now
        return row

    def load(self) -> dict[str, Any]:
        """The data; that the session was seen is written once a minute."""
        row = self._row()
        if row is None:
            return {}
        now, rows = SYSTEM_CLOCK.now(), self.get_model_class().objects
        if now - row.seen_at >= SEEN_PRECISION:
            rows.filter(pk=row.pk, seen_at=row.seen_at).update(seen_at=now)
        data = dict(self.decode(row.session_data))
        if SESSION_KEY in data:  # one of a release before has moved here, and does not begin anew
            data.setdefault(BEGUN, row.begun_at.isoformat())
        return data

    def exists(self, session_key: str) -> bool:
        """Whether there is one whose cookie says this."""
        return bool(self.get_model_class().objects.filter(pk=stored_key(session_key)).exists())

    def delete(self, session_key: str | None = None) -> None:
        """End it, or the one whose cookie says this."""
        key = session_key or self.session_key
        if key is not None:
            self.get_model_class().objects.filter(pk=stored_key(key)).delete()

    def _row(self) -> Any:
        """The living row; without one the cookie's key is forgotten, as Django's own engine does it: nobody chooses a key."""
        rows = self.get_model_class().objects.filter(expire_date__gt=timezone.now())
        row = rows.filter(pk=stored_key(self.session_key)).first() if self.session_key else None
        if row is None:
            self._session_key = None
        return row
