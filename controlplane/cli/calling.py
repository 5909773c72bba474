"""What every program has that calls REST by `requests`: the key as a header, a problem in an answer, why there was none.

The command line and the provider for Terraform each have a client, with patience and errors of their own; both stand on this. It
knows nothing of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from requests.auth import AuthBase

if TYPE_CHECKING:
    import requests

LARGEST_PAGE = 200
CONNECT_S, ANSWER_S = 10, 70
"""No call takes a minute: the service gives up those whom it waits for before that."""
PROBLEM = "application/problem+json"


class Bearer(AuthBase):
    """The header of every request. An object of its own, or `requests` would look into a .netrc first."""

    def __init__(self, api_key: str) -> None:
        self._api_key = api_key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._api_key}"
        return request


class AgainError(Exception):
    """This attempt has brought no answer that stands. `after_s`: when the service has said to ask again, or None."""

    def __init__(self, error: Exception, after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s


def problem_in(response: requests.Response) -> dict[str, Any] | None:
    """The problem document; None: something in between has answered."""
    if not response.headers.get("Content-Type", "").startswith(PROBLEM):
        return None
    try:
        found = response.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def innermost(error: BaseException) -> str:
    """The reason, in one line: `requests` wraps it in several others."""
    while True:
        inner = error.__cause__ or error.__context__
        if inner is None or not isinstance(inner, Exception):
            return str(error)
        error = inner
