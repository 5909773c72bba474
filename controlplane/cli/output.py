"""Standard output is the answer, as a table or as the API's JSON; standard error is everything that is said beside it.

Colours are for terminals alone, and not for those whose owner has set NO_COLOR. What goes into a pipe is neither coloured nor
folded, whatever the environment says of the terminal.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from controlplane.cli import tables
from controlplane.cli.errors import Misused
from controlplane.cli.values import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.cli.errors import CliError
    from controlplane.cli.tables import Columns, Line

TABLE, JSON = "table", "json"
KINDS = (TABLE, JSON)
INCOMPLETE = "The metrics store does not answer: figures that only the store has are missing."


def is_coloured(stream: IO[str]) -> bool:
    """Whether escape sequences mean something there, and are wanted."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


class Output:
    """What a command says. `kind` is one of KINDS."""

    def __init__(self, kind: str = TABLE) -> None:
        self.kind = kind

    @property
    def is_json(self) -> bool:
        """For programs."""
        return self.kind == JSON

    def document(self, found: Mapping[str, Any] | None) -> None:
        """One answer. None, which is an answer without content, prints nothing."""
        if found is None:
            return
        if self.is_json:
            self._json(found)
        else:
            _print(tables.document(found, width=_width()), sys.stdout)

    def pages(
        self,
        pages: Iterable[Mapping[str, Any]],
        wanted: Columns,
        readable: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        note: str = "",
    ) -> None:
        """A list: one page of JSON is printed as it came; several become one, with `next` of the last.

        In a table each item is as `readable` makes it. `note`: a member with a sentence about the list, if it is not empty.
        """
        found = list(pages)
        items = [item for page in found for item in page["items"]]
        if self.is_json:
            self._json(found[0] if len(found) == 1 else {**found[-1], "items": items})
        elif items:
            shown = items if readable is None else [readable(item) for item in items]
            _print(tables.listing(shown, wanted, width=_width()), sys.stdout)
        else:
            self.note("Nothing.")
        if said := found[0].get(note):
            self.note(f"{said[:1].upper()}{said[1:]}.")

    def items(self, found: Sequence[Mapping[str, Any]], wanted: Columns) -> None:
        """A list that is answered whole, without pages: JSON is printed as it came."""
        if self.is_json:
            self._json(found)
        else:
            self.pages([{"items": found}], wanted)

    def line(self, item: Mapping[str, Any], text: str) -> None:
        """One of many that come one by one, at once: of JSON a line for each."""
        said = json.dumps(item, ensure_ascii=False) if self.is_json else text
        sys.stdout.write(f"{said}\n")
        sys.stdout.flush()

    def text(self, text: str) -> None:
        """A file, as it is; on a terminal without what would steer it."""
        if sys.stdout.isatty():
            text = "\n".join(map(plain, text.split("\n")))
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")

    def refuse_terminal(self) -> None:
        """Asked before a file is fetched that may hold any bytes, what steers a terminal among them. Raises Misused."""
        if sys.stdout.isatty():
            raise Misused("this writes a file: say into which, with > FILE")

    def content(self, content: bytes) -> None:
        """A file, byte for byte."""
        sys.stdout.flush()
        sys.stdout.buffer.write(content)

    def note(self, sentence: str) -> None:
        """Said to people; a program that reads JSON is not told."""
        if not self.is_json:
            sys.stderr.write(f"{plain(sentence)}\n")

    def failure(self, error: CliError) -> None:
        """Why it has not become anything."""
        head = [("sluice: ", tables.BAD), (str(error), "")]
        _print([head, *([(note, "")] for note in error.notes)], sys.stderr)

    def _json(self, found: object) -> None:
        sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def stderr_console() -> Console | None:
    """For what moves while one waits; None where it would be noise in a file."""
    return Console(file=sys.stderr, highlight=False) if is_coloured(sys.stderr) else None


def _width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _print(lines: Sequence[Line], stream: IO[str]) -> None:
    if not is_coloured(stream):
        stream.writelines(f"{text}\n" for text in tables.texts(lines))
        return
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    for line in lines:
        # Text with styles, never markup: a topic may be called [red].
        console.print(Text.assemble(*line), soft_wrap=True)
