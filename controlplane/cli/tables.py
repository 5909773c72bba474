"""Where text stands: lists as columns, single things as names with values. Pure.

A line is made of spans, each a text and a style; `output` prints them with colours on a terminal and as they are elsewhere. A
list that is wider than the terminal becomes one block of lines for each row: nothing is cut off, and no column is broken in the
middle of a word. With no width (a pipe, a file) a row is always one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from controlplane.cli.values import DASH, cell, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Span = tuple[str, str]
Line = list[Span]
Columns = tuple[tuple[str, str], ...]
"""Title and path of each."""

GAP = "  "
TITLE = "bold"
GOOD, BAD, SOON = "green", "red", "yellow"
STYLES = {
    **dict.fromkeys(("running", "succeeded", "healthy", "Stable", "invoiced", "complete"), GOOD),
    **dict.fromkeys(("failed", "critical", "failing", "stalled", "absent", "Dead", "refused"), BAD),
    **dict.fromkeys(
        (
            "creating",
            "isolated",
            "restoring",
            "deleting",
            "degraded",
            "pending",
            "silent",
            "starting",
            "waiting",
            "waiting_for_metering",
        ),
        SOON,
    ),
}
"""By the word, in columns that are states."""
STATES = ("state", "health")
COUNT = "#"


def columns(*paths: str, **titled: str) -> Columns:
    """``columns("id", health="health.state")``: paths, the last word of which is the title; others have a title of their own.

    ``members.#`` is how many members there are.
    """
    plain_ones = tuple((path.rpartition(".")[2], path) for path in paths)
    return plain_ones + tuple((title, path) for title, path in titled.items())


def value_at(document: Mapping[str, Any], path: str) -> object:
    """The member at a dotted path; None where there is none."""
    found: Any = document
    for name in path.split("."):
        if name == COUNT:
            return len(found) if isinstance(found, list) else None
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def listing(rows: Sequence[Mapping[str, Any]], wanted: Columns, *, width: int | None) -> list[Line]:
    """A list, its titles above."""
    titles = [title for title, _ in wanted]
    texts = [[cell(path.rpartition(".")[2], value_at(row, path)) for _, path in wanted] for row in rows]
    return grid(titles, texts, width=width)


def grid(titles: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None) -> list[Line]:
    """Columns below their titles; blocks where they do not fit. Each row has a text for each title."""
    named = [_named(titles, row) for row in rows]
    columns_ = [[row[index] for row in rows] for index in range(len(titles))]
    widths = [max(map(cell_len, [titles[index], *column])) for index, column in enumerate(columns_)]
    if width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width and rows:
        return _blocks(named)
    is_number = [bool(rows) and all(map(_numeric, column)) for column in columns_]
    head = _line([(title, TITLE) for title in titles], widths, is_number)
    body = [_line([(text, _style(title, text)) for title, text in row], widths, is_number) for row in named]
    return [head, *body]


def document(found: Mapping[str, Any], *, width: int | None) -> list[Line]:
    """A single thing: its members, then its lists as tables of their own, then texts of several lines."""
    pairs: list[tuple[str, str]] = []
    below: list[Line] = []
    for path, value in _flat(found):
        if _is_table(value):
            below += [[], [(plain(path), TITLE)], *listing(value, _columns_in(value), width=width)]
        elif isinstance(value, str) and "\n" in value:
            below += [[], [(plain(path), TITLE)], *([(plain(line), "")] for line in value.splitlines())]
        else:
            pairs.append((plain(path), cell(path.rpartition(".")[2], value)))
    return (_pairs(pairs) + below)[0 if pairs else 1 :]


def texts(lines: Iterable[Line]) -> list[str]:
    """Without styles, and without spaces at the end."""
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def _flat(found: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _columns_in(rows: Sequence[Mapping[str, Any]]) -> Columns:
    paths = dict.fromkeys(path for row in rows for path, _ in _flat(row))
    return tuple((path, path) for path in paths)


def _named(titles: Sequence[str], row: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(titles, row, strict=True))


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[Line]:
    if not pairs:
        return []
    wide = max(cell_len(name) for name, _ in pairs)
    return [[(_padded(name, wide) + GAP, TITLE), (text, _style(name.rpartition(".")[2], text))] for name, text in pairs]


def _blocks(rows: Sequence[Sequence[tuple[str, str]]]) -> list[Line]:
    lines: list[Line] = []
    for row in rows:
        lines += [*([[]] if lines else []), *_pairs(row)]
    return lines


def _line(spans: Sequence[Span], widths: Sequence[int], is_number: Sequence[bool]) -> Line:
    line: Line = []
    for index, (text, style) in enumerate(spans):
        space = " " * (widths[index] - cell_len(text))
        line += [(GAP, "")] if line else []
        line += [(space, ""), (text, style)] if is_number[index] else [(text, style), (space, "")]
    return line


def _numeric(text: str) -> bool:
    number = text.partition(" ")[0]  # "1.7 MiB"
    return text == DASH or number.removeprefix("-").replace(".", "", 1).isdigit()


def _style(title: str, text: str) -> str:
    return STYLES.get(text, "") if title in STATES else ""


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
