"""HTTP to one installation: repetitions under one `Idempotency-Key`, waiting where the service says so, refusals as errors.

A change is sent again with its key when nobody knows whether it has arrived, so nothing is made twice. What the service calls
retriable (429, 503, someone who was faster) is sent again after the time that it names. All together has `PATIENCE_S`. The key
goes to the one address: redirections are not followed, and what a `.netrc` says is not sent.
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import requests

from controlplane.cli.calling import (
    ANSWER_S,
    CONNECT_S,
    LARGEST_PAGE,
    PROBLEM,
    AgainError,
    Bearer,
    innermost,
    problem_in,
)
from controlplane.terraform.diagnostics import Away, Diagnostic, ProviderError, Refused, Unfinished, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from controlplane.cli.operations import Call

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Before the second attempt, the third, …; the last one again and again."""
PATIENCE_S = 300
"""For a call with all its repetitions: five minutes of 429 are more than any limit makes."""
SHORTEST_PAUSE_S = 0.1
"""Whatever the service says: `Retry-After: 0` is no reason to ask without end."""
NO_NAMES = ("", ".", "..")
"""An address loses them on its way, and what is behind them is something else: `topics/../whitelist` is the instance's."""
GATEWAY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
AGENT = "terraform-provider-sluice"


@dataclass
class Waits:
    """Time, and that Terraform was told to stop."""

    stopped: threading.Event = field(default_factory=threading.Event)

    def pause(self, seconds: float) -> None:
        """Raises Unfinished as soon as Terraform stops."""
        if self.stopped.wait(seconds):
            raise Unfinished(Diagnostic("Interrupted", "Terraform was told to stop."))


class Client:
    """Calls in the name of one API key, from any thread."""

    def __init__(self, url: str, api_key: str, waits: Waits, *, patience_s: float = PATIENCE_S) -> None:
        self.url = url
        self.waits = waits
        self._auth = Bearer(api_key)
        self._patience_s = patience_s
        self._of_thread = threading.local()

    def get(self, call: Call, *, query: Mapping[str, str] | None = None, **ids: str) -> Any:
        """The answer as JSON. Raises Refused, Away, Unfinished."""
        return self._answered(call, ids, query=query)

    def change(self, call: Call, body: Mapping[str, Any] | None = None, **ids: str) -> Any:
        """The same of what changes something; None where the answer has no content.

        The key is made here and not with the plan, which would be better known to a second run: Terraform plans each change anew
        when it applies it.
        """
        return self._answered(call, ids, body=body, key=f"terraform-{uuid.uuid4()}")

    def items(self, call: Call, *, query: Mapping[str, str] | None = None, **ids: str) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page."""
        asked = {**(query or {}), "limit": str(LARGEST_PAGE)}
        while True:
            page = self.get(call, query=asked, **ids)
            yield from page["items"]
            if page.get("next") is None:
                return
            asked["cursor"] = page["next"]

    def _answered(
        self,
        call: Call,
        ids: Mapping[str, str],
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Any:
        for name, text in ids.items():
            if text in NO_NAMES:
                raise ProviderError(Diagnostic("That is no name", f"{name} is {text!r}."))
        headers = {"Accept": f"application/json, {PROBLEM}", **({"Idempotency-Key": key} if key else {})}
        began, attempt = time.monotonic(), 0
        while True:
            try:
                return self._once(lambda: self._send(call, ids, query, body, headers))
            except AgainError as again:
                pause_s = PAUSES_S[min(attempt, len(PAUSES_S) - 1)] if again.after_s is None else again.after_s
                pause_s = max(pause_s, SHORTEST_PAUSE_S)
                if time.monotonic() - began + pause_s > self._patience_s:
                    raise again.error from again.__cause__
                self.waits.pause(pause_s)
                attempt += 1

    def _send(
        self,
        call: Call,
        ids: Mapping[str, str],
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> requests.Response:
        return self._session().request(
            call.method,
            self.url + call.at(**ids),
            params=query,
            json=body,
            headers=headers,
            timeout=(CONNECT_S, ANSWER_S),
            allow_redirects=False,
        )

    def _session(self) -> requests.Session:
        found: requests.Session | None = getattr(self._of_thread, "session", None)
        if found is None:
            found = self._of_thread.session = requests.Session()
            found.auth = self._auth
            found.headers["User-Agent"] = AGENT
        return found

    def _once(self, send: Callable[[], requests.Response]) -> Any:
        try:
            response = send()
        except (requests.exceptions.SSLError, requests.exceptions.InvalidURL) as error:
            raise Away(Diagnostic(f"{self.url} cannot be trusted or understood", str(error), ("endpoint",))) from error
        except requests.exceptions.RequestException as error:
            raise AgainError(Away(Diagnostic(f"{self.url} does not answer", innermost(error)))) from error
        if response.status_code < HTTPStatus.MULTIPLE_CHOICES:
            return self._content(response)
        if response.status_code < HTTPStatus.BAD_REQUEST:
            raise Away(Diagnostic(f"{self.url} sends its callers elsewhere", "Set endpoint to the address it names."))
        problem = problem_in(response)
        no = refused(response.status_code, problem) if problem else self._foreign(response.status_code)
        is_open = response.status_code in GATEWAY if problem is None else problem.get("retriable") is True
        raise AgainError(no, _seconds(response)) if is_open else no

    def _foreign(self, status: int) -> Refused:
        """Something else has answered, such as a proxy: its 404 does not say that a resource is gone."""
        return Refused(
            status,
            {"title": f"{self.url} answers {status}", "detail": "The answer is not of Sluice: is endpoint right?"},
        )

    def _content(self, response: requests.Response) -> Any:
        if response.status_code == HTTPStatus.NO_CONTENT or not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise Away(Diagnostic(f"{self.url} answers {response.status_code}, and not as Sluice does")) from error


def _seconds(response: requests.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None
