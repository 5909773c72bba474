"""What can go wrong, as one tree. Each error carries the exit status of the program.

::

    CliError
    ├── Refused       1   the service refuses it, an operation failed, or the answer to a question is no
    ├── Misused       2   what was typed cannot be meant (the parser of arguments ends with 2 as well)
    ├── NotSignedIn   3   no API key is known, or it is not valid
    ├── Missing       4   there is nothing of this name
    ├── Away          5   the service does not answer, or says that it cannot at the moment
    └── GivenUp       6   an operation was still running when the time to wait was over; it goes on

130 is Ctrl-C, as in every shell.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from controlplane.cli.values import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERRUPTED = 130
HINTS = {
    "price_unconfirmed": "Say --confirm-price if the price is meant.",
    "storage_below_use": "Say --accept-full-storage if that is meant.",
    "group_not_empty": "Stop its consumers, or see who they are: sluice group show.",
}
"""By the code of a problem: which option is meant by what the service asks for."""


class CliError(Exception):
    """Base of the tree. `str()` is the sentence for standard error; `notes` are lines below it."""

    exit_status = 1

    def __init__(self, sentence: str, *, notes: tuple[str, ...] = (), code: str = "") -> None:
        super().__init__(sentence)
        self.notes = notes
        self.code = code


class Refused(CliError):  # noqa: N818  # the tree reads as what happened
    """The service has understood, and says no."""

    exit_status = 1


class Misused(CliError):  # noqa: N818
    """The command line contradicts itself."""

    exit_status = 2


class NotSignedIn(CliError):  # noqa: N818
    """Without a valid key nothing is answered."""

    exit_status = 3


class Missing(CliError):  # noqa: N818
    """Nothing of this name belongs to the caller."""

    exit_status = 4


class Away(CliError):  # noqa: N818
    """Nobody answers, or not in time."""

    exit_status = 5


class GivenUp(CliError):  # noqa: N818
    """Waiting has ended before the operation has."""

    exit_status = 6


def of_problem(status: int, problem: Mapping[str, Any]) -> CliError:
    """The error for a problem document (RFC 9457); members that are missing are left out of the text."""
    title, detail, code = (str(problem.get(name) or "") for name in ("title", "detail", "code"))
    sentence = ": ".join(part for part in (title, detail) if part) or f"the service answers {status}"
    fields = [each for each in problem.get("errors") or () if isinstance(each, dict) and each.get("field")]
    notes = [f"  {plain(each['field'])}: {plain(each.get('detail', ''))}" for each in fields]
    if code in HINTS:
        notes.append(HINTS[code])
    return _kind(status)(plain(sentence), notes=tuple(notes), code=code)


def _kind(status: int) -> type[CliError]:
    if status == HTTPStatus.UNAUTHORIZED:
        return NotSignedIn
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return Missing
    busy = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
    return Away if busy or status >= HTTPStatus.INTERNAL_SERVER_ERROR else Refused
