"""HTTP to one installation: the key, pages, repetitions, refusals as errors.

A change carries an `Idempotency-Key` of its own, so it is safe to send it again when nobody knows whether it has arrived: the
service answers a repetition as it answered the first, and does nothing twice. Connections that fail, gateways that give up, and
a first attempt that is still under way are tried again a few times; a refusal never is. The key goes to the profile's address
alone: redirections are not followed, and what a `.netrc` says is not sent.
"""

from __future__ import annotations

import time
import uuid
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

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
from controlplane.cli.errors import Away, of_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from controlplane.cli.operations import Call
    from controlplane.cli.profiles import Profile

PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""Before the second attempt, the third, …"""
GATEWAY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)
IN_PROGRESS = "idempotency_in_progress"
AGENT = "sluice-cli"
NO_IDS: Mapping[str, str] = MappingProxyType({})


class Client:
    """Calls in the name of one API key."""

    def __init__(
        self, profile: Profile, *, sleep: Callable[[float], None] = time.sleep, patience_s: float | None = None
    ) -> None:
        """With `patience_s` there is one attempt, which has so long."""
        self.url = profile.url
        self._sleep = sleep
        self._pauses_s = PAUSES_S if patience_s is None else ()
        self._timeout_s = (CONNECT_S, ANSWER_S) if patience_s is None else (patience_s, patience_s)
        self._session = requests.Session()
        self._session.auth = Bearer(profile.api_key)
        self._session.headers["User-Agent"] = AGENT

    def close(self) -> None:
        """Let connections go."""
        self._session.close()

    def call(
        self,
        call: Call,
        ids: Mapping[str, str] = NO_IDS,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """The answer as JSON; None where it has no content. Raises CliError."""
        response = self._answered(call, ids, query=query, body=body)
        if response.status_code == HTTPStatus.NO_CONTENT or not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise Away(f"{self.url} answers {response.status_code}, and not as Sluice does") from error

    def text(self, call: Call, ids: Mapping[str, str] = NO_IDS, *, query: Mapping[str, Any] | None = None) -> str:
        """An answer that is no JSON: a file, metrics. Raises CliError."""
        return self._answered(call, ids, query=query).text

    def content(self, call: Call, ids: Mapping[str, str] = NO_IDS, *, query: Mapping[str, Any] | None = None) -> bytes:
        """A file that may hold any bytes. Raises CliError."""
        return self._answered(call, ids, query=query).content

    def headers(
        self, call: Call, ids: Mapping[str, str] = NO_IDS, *, query: Mapping[str, Any] | None = None
    ) -> Mapping[str, str]:
        """The headers of an answer without content. Raises CliError."""
        return self._answered(call, ids, query=query).headers

    def pages(
        self,
        call: Call,
        ids: Mapping[str, str] = NO_IDS,
        *,
        limit: int | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Pages of a list, until it ends or `limit` items have come. No page holds more than was asked for."""
        asked, left = dict(query or {}), limit
        while True:
            if left is not None:
                asked["limit"] = min(left, LARGEST_PAGE)
            page = self.call(call, ids, query=asked)
            if not isinstance(page, dict) or not isinstance(page.get("items"), list):
                raise Away(f"{self.url} answers, and not as Sluice does")
            yield page
            if left is not None:
                left -= len(page["items"])
            if page.get("next") is None or (left is not None and left <= 0):
                return
            if not page["items"] and page["next"] == asked.get(
                "cursor"
            ):  # such as messages of a partition without a leader
                raise Away("what is left cannot be shown now: try again in a few seconds")
            asked["cursor"] = page["next"]

    def files(
        self, call: Call, ids: Mapping[str, str], *, query: Mapping[str, Any], limit: int, count: str
    ) -> Iterator[bytes]:
        """Files that lead to each other (`Link`), until they end or hold `limit` items.

        `count`: the header that says how many items are in one. Raises CliError.
        """
        asked, left = dict(query), limit
        while True:
            response = self._answered(call, ids, query={**asked, "limit": min(left, LARGEST_PAGE)})
            yield response.content
            left -= int(response.headers.get(count, 0))
            following = parse_qs(urlsplit(response.links.get("next", {}).get("url", "")).query).get("cursor")
            if not following or left <= 0:
                return
            if following[0] == asked.get("cursor"):  # such as messages of a partition without a leader
                raise Away("what is left cannot be shown now: try again in a few seconds")
            asked["cursor"] = following[0]

    def _answered(
        self,
        call: Call,
        ids: Mapping[str, str],
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> requests.Response:
        headers = {"Accept": f"application/json, {PROBLEM}, */*"}
        if call.is_change:
            headers["Idempotency-Key"] = str(uuid.uuid4())  # one for the call, whatever the number of attempts
        for pause_s in (*self._pauses_s, None):
            try:
                return self._once(call, call.at(**ids), query=query, body=body, headers=headers)
            except AgainError as again:
                if pause_s is None:
                    raise again.error from again.__cause__
                self._sleep(pause_s)
        raise AssertionError("the last attempt ends by itself")

    def _once(
        self,
        call: Call,
        address: str,
        *,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> requests.Response:
        try:
            response = self._session.request(
                call.method,
                self.url + address,
                params={name: value for name, value in (query or {}).items() if value is not None},
                json=body,
                headers=headers,
                timeout=self._timeout_s,
                allow_redirects=False,
            )
        except (requests.exceptions.SSLError, requests.exceptions.InvalidURL) as error:
            raise Away(f"{self.url} cannot be trusted or understood: {error}") from error
        except requests.exceptions.RequestException as error:
            raise AgainError(Away(f"{self.url} does not answer", notes=(f"  {innermost(error)}",))) from error
        if response.status_code < HTTPStatus.MULTIPLE_CHOICES:
            return response
        raise self._refusal(response)

    def _refusal(self, response: requests.Response) -> Exception:
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return Away(f"{self.url} sends its callers elsewhere: sign in with the address that it names")
        problem = problem_in(response)
        error = of_problem(response.status_code, problem or {"title": f"{self.url} answers {response.status_code}"})
        is_open = response.status_code in GATEWAY and problem is None
        return AgainError(error) if is_open or error.code == IN_PROGRESS else error
