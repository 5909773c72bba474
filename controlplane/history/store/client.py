"""The store by HTTP: remote write, and questions of ranges.

What is written may take `WITHIN_S`. All questions of one page together wait `QUESTIONS_S`: whoever asks for a page has a thread
of this process, of which there are few. A store that was silent is not asked for a while, and then by one thread alone; the
others go on without it.

Errors::

    StoreAway      it did not answer, or not as a store does: later it may
    StoreSilent    likewise, to whatever it is asked: no connection, no answer in time, or 5xx
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
from django.core.signals import request_finished, request_started
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.exceptions import HTTPError, ReadTimeoutError

from controlplane.history.store.wire import HEADERS

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from controlplane.history.store.spans import Windows

CONNECT_S, READ_S, WITHIN_S = 2.0, 8.0, 15.0
"""Of what is written: for a connection, for the next bytes, and for all of an answer."""
QUESTIONS_S = 2.5
"""For all questions of a page together, or of whatever else this service is asked; outside of that, for each."""
REACHED_S = 0.5
"""Of that, for a connection."""
TELLS_S = QUESTIONS_S / 2
"""Who has waited less than this does not know that the store is silent: other questions of the page had taken the time."""
MOST_BYTES = 16 * 2**20
"""Of an answer."""
PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
"""So long a store that did not answer a question is not asked, twice as long each time after that."""
BAD_REQUEST, NOT_FOUND, BROKEN = 400, 404, 500
Row = tuple[dict[str, str], list[tuple[int, float]]]
"""Labels, and values by the second at which a window ends."""


class StoreAway(Exception):  # noqa: N818  # reads as what it is
    """The store does not answer, or not as a store does."""


class StoreSilent(StoreAway):
    """It answers nobody, as far as one can tell."""


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
    """Which address was silent: how often in a row, and until when it is not asked. Of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silent: dict[str, tuple[int, float]] = {}

    def may_ask(self, url: str) -> bool:
        """Whether this thread asks. After a silence one may, and all others go on without, until it has an answer."""
        with self._lock:
            times, until_s = self._silent.get(url, (0, 0.0))
            if times and monotonic() < until_s:
                return False
            if times:
                self._silent[url] = times + 1, monotonic() + _pause_s(times + 1)
            return True

    def note(self, url: str) -> None:
        """It was silent. Threads that asked at the same time count once."""
        with self._lock:
            times, _ = self._silent.get(url, (1, 0.0))
            self._silent[url] = times, monotonic() + _pause_s(times)

    def answered(self, url: str) -> None:
        """All may ask."""
        with self._lock:
            self._silent.pop(url, None)

    def forget(self) -> None:
        """As at the start of the process."""
        with self._lock:
            self._silent.clear()


def _pause_s(times: int) -> float:
    return max(PAUSE_S, min(LONGEST_PAUSE_S, PAUSE_S * float(2 ** min(times - 1, 10))))


class _Waited(threading.local):
    """How long the questions of what this thread serves have waited; None: it serves nothing."""

    seconds: float | None = None


AWAY = _Away()
_WAITED = _Waited()


def _begins(**_: object) -> None:
    _WAITED.seconds = 0.0


def _ends(**_: object) -> None:
    _WAITED.seconds = None


request_started.connect(_begins, dispatch_uid="metrics store: a page begins")
request_finished.connect(_ends, dispatch_uid="metrics store: a page ends")


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
        status, answer = self._asked(self.write_url, CONNECT_S, READ_S, WITHIN_S, data=body, headers=HEADERS)
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
        left_s = QUESTIONS_S - (_WAITED.seconds or 0.0)
        if left_s <= 0:
            raise StoreAway(f"{self.url} has had the time that a page may wait for it")
        if not AWAY.may_ask(self.url):
            raise StoreAway(f"{self.url} did not answer a moment ago")
        form = {
            "query": text,
            "start": str(windows.first_end),
            "end": str(windows.last_end),
            "step": str(windows.step_s),
            "nocache": "1",  # VictoriaMetrics: rows may come late
        }
        began_s = monotonic()
        url = f"{self.url}/api/v1/query_range"
        try:
            status, answer = self._asked(url, min(left_s, REACHED_S), left_s, left_s, data=form, headers={})
            if status != 200:
                kind = StoreSilent if status >= BROKEN else StoreAway
                raise kind(f"{self.url} answers {status}: {answer[:500].decode(errors='replace')}")
            found = _rows(answer)
        except StoreSilent as error:
            if left_s >= TELLS_S or not isinstance(error.__cause__, (requests.Timeout, ReadTimeoutError, TimeoutError)):
                AWAY.note(self.url)
            raise
        except StoreAway:  # a question that is too much for it, say: it answers others
            AWAY.answered(self.url)
            raise
        else:
            AWAY.answered(self.url)
            return found
        finally:
            if _WAITED.seconds is not None:
                _WAITED.seconds += monotonic() - began_s

    def _asked(self, url: str, connect_s: float, read_s: float, within_s: float, **what: Any) -> tuple[int, bytes]:
        until_s = monotonic() + within_s
        try:
            with requests.post(
                url, auth=self.auth, timeout=(connect_s, read_s), allow_redirects=False, stream=True, **what
            ) as answer:
                return answer.status_code, _whole(answer, until_s)
        except (requests.RequestException, HTTPError, TimeoutError) as error:
            raise StoreSilent(f"{url}: {type(error).__name__}") from error


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


def _whole(answer: Response, until_s: float) -> bytes:
    """Raises StoreAway of what is too much, TimeoutError of what takes too long: whatever has come is looked at at once."""
    found = bytearray()
    while part := answer.raw.read1(2**16, decode_content=True):
        found += part
        if len(found) > MOST_BYTES:
            raise StoreAway(f"an answer of more than {MOST_BYTES} bytes")
        if monotonic() > until_s:
            raise TimeoutError
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
