"""Names that people give: the one rule for instances, organisations, people and API keys. Cells of CSV, moments. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from controlplane.core.errors import Invalid

LONGEST_NAME = 128
FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001  # full-width ones, which some spreadsheets read alike
"""How a text begins that a spreadsheet may compute."""


def name_problem(value: object) -> str | None:
    """Why a name will not do.

    Control characters would forge lines of logs and audit trails, and invisible ones (a right-to-left override, a space of
    no width) make two names look alike.
    """
    if not isinstance(value, str) or not value.strip():
        return "must not be empty"
    if len(value) > LONGEST_NAME:
        return f"must have at most {LONGEST_NAME} characters"
    if not value.isprintable():
        return "must hold printable characters only"
    return None


def name_checked(value: str, *, field: str = "name", may_be_empty: bool = False) -> str:
    """The name without spaces around it. Raises Invalid beside `field`."""
    if may_be_empty and not value.strip():
        return ""
    problem = name_problem(value)
    if problem is not None:
        raise Invalid.field(field, problem)
    return value.strip()


def text_checked(value: str, *, field: str, most: int) -> str:
    """A line that may be empty, without spaces around it. Raises Invalid beside `field`."""
    text = value.strip()
    if len(text) > most:
        raise Invalid.field(field, f"must have at most {most} characters")
    if text and not text.isprintable():
        raise Invalid.field(field, "must hold printable characters only")
    return text


def cell_text(value: str) -> str:
    """As a cell of CSV: what a spreadsheet would compute has an apostrophe before it."""
    return f"'{value}" if value.lstrip().startswith(FORMULA) or value.startswith(FORMULA) else value


def second_text(moment: datetime) -> str:
    """RFC 3339 in UTC, to the second: ``2026-11-21T09:03:17Z``."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def visible(name: str) -> str:
    r"""A name that a client chose, on one line: ``two\nlines`` for one with a line end in it, ``\x00`` for NUL."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)
