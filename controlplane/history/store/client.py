"""The store by HTTP: remote write, and questions of ranges. Nothing here waits for longer than `WITHIN_S`.

Errors::

    StoreAway      it did not answer, or not as a store does: later it may
    StoreRefused   it answered that it does not take these samples (400), and will not: too old for it, say

Redirects are not followed: they would carry a secret to who knows where.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson
import requests
from django.conf import settings
from requests.auth import AuthBase, HTTPBasicAuth

from controlplane.history.store.wire import HEADERS

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from controlplane.history.store.spans import Windows

CONNECT_S, READ_S, WITHIN_S = 2, 8, 15
"""For a connection, for the next bytes, and for all of an answer."""
MOST_BYTES = 64 * 2**20
"""Of an answer."""
PAUSE_S = 5.0
"""So long a store that did not answer a question is not asked: a page asks several."""
BAD_REQUEST, NOT_FOUND = 400, 404
Row = tuple[dict[str, str], list[tuple[int, float]]]
"""Labels, and values by the second at which a window ends."""


class StoreAway(Exception):  # noqa: N818  # reads as what it is
    """The store does not answer, or not as a store does."""


class StoreRefused(Exception):  # noqa: N818  # the same
    """It does not take these samples, now or later."""


class _Bearer(AuthBase):
    """A token; a header would give way to what a .netrc says."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        r.headers["Authorization"] = f"Bearer {self._token}"
        return r


class _Away:
    """Until when which address is not asked. Of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until_s: dict[str, float] = {}

    def is_away(self, url: str) -> bool:
        """Whether it did not answer a moment ago."""
        return monotonic() < self._until_s.get(url, 0.0)

    def note(self, url: str) -> None:
        """It has not answered."""
        with self._lock:
            self._until_s[url] = monotonic() + PAUSE_S

    def forget(self) -> None:
        """As at the start of the process."""
        self._until_s.clear()


AWAY = _Away()


@dataclass(frozen=True, slots=True)
class Store:
    """One store. `url` is the address before ``/api/v1/query_range``."""

    url: str
    write_url: str
    auth: AuthBase | None = None

    @property
    def digest(self) -> str:
        """It stands for the store in the database: another address is another store, which has nothing yet."""
        return sha256(self.url.encode()).hexdigest()[:16]

    def write(self, body: bytes) -> None:
        """What `wire.body_of` has made. Raises StoreAway, StoreRefused."""
        status, answer = self._asked(self.write_url, data=body, headers=HEADERS)
        text = answer[:500].decode(errors="replace").strip()
        if status == BAD_REQUEST:
            raise StoreRefused(text)
        if not 200 <= status < 300:
            hint = ""
            if status == NOT_FOUND:
                hint = (
                    ". Is METRICS_URL a store that takes remote write? What tenants' Prometheus scrapes is "
                    "SLUICE_SCRAPE_URL since METRICS_URL is the store of the history"
                )
            raise StoreAway(f"{self.write_url} answers {status}: {text}{hint}")

    def query(self, text: str, windows: Windows) -> list[Row]:
        """What PromQL says at the end of each window. Raises StoreAway."""
        if AWAY.is_away(self.url):
            raise StoreAway(f"{self.url} did not answer a moment ago")
        form = {
            "query": text,
            "start": str(windows.first_end),
            "end": str(windows.last_end),
            "step": str(windows.step_s),
            "nocache": "1",  # VictoriaMetrics: rows may come late
        }
        try:
            status, answer = self._asked(f"{self.url}/api/v1/query_range", data=form, headers={})
            if status != 200:
                raise StoreAway(f"{self.url} answers {status}: {answer[:500].decode(errors='replace')}")
            return _rows(answer)
        except StoreAway:
            AWAY.note(self.url)
            raise

    def _asked(self, url: str, **what: Any) -> tuple[int, bytes]:
        began_s = monotonic()
        try:
            with requests.post(
                url, auth=self.auth, timeout=(CONNECT_S, READ_S), allow_redirects=False, stream=True, **what
            ) as answer:
                return answer.status_code, _whole(answer, began_s)
        except requests.RequestException as error:
            raise StoreAway(f"{url}: {type(error).__name__}") from error


def store_installed() -> Store | None:
    """That of this installation; None: the history is in the database."""
    environment = settings.ENVIRONMENT
    if not environment.metrics_url:
        return None
    auth: AuthBase | None = None
    token = environment.secret("metrics_store_token")
    if token:
        auth = _Bearer(token)
    elif environment.metrics_user:
        password = environment.secret("metrics_store_password") or ""
        auth = HTTPBasicAuth(environment.metrics_user.encode(), password.encode())
    write_url = environment.metrics_write_url or f"{environment.metrics_url}/api/v1/write"
    return Store(environment.metrics_url, write_url, auth)


def _whole(answer: Response, began_s: float) -> bytes:
    found = bytearray()
    for part in answer.iter_content(2**16):
        found += part
        if len(found) > MOST_BYTES or monotonic() - began_s > WITHIN_S:
            raise StoreAway(f"an answer of more than {MOST_BYTES} bytes, or {WITHIN_S} seconds")
    return bytes(found)


def _rows(answer: bytes) -> list[Row]:
    try:
        document = orjson.loads(answer)
        if document["status"] != "success" or document["data"]["resultType"] != "matrix":
            raise StoreAway(f"a question was not understood: {answer[:500]!r}")
        return [
            (
                {str(name): str(value) for name, value in each["metric"].items()},
                [(round(float(at)), found) for at, text in each["values"] if not math.isnan(found := float(text))],
            )
            for each in document["data"]["result"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreAway(f"no answer of a store: {answer[:200]!r}") from error
