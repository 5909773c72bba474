"""What stands in a message, as a person can read it: text, a JSON tree, bytes in hex. Pure.

Messages are any bytes, of whoever may produce to the topic. What comes out of here is text and numbers; templates escape it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LONGEST_PREVIEW = 160
LONGEST_TEXT = 64 * 1024
LONGEST_HEX = 4 * 1024
LONGEST_HEADERS, LONGEST_HEADER_HEX = 32 * 1024, 256
"""Of all headers of a message together, which may be as large as the message; and of each in hex."""
MOST_OPENED, MOST_HEADERS = 100, 1_000
"""Headers that are opened, and those that have a line: one of few bytes costs a page as much work as a large one."""
LARGEST_JSON = 256 * 1024
MOST_NODES, DEEPEST = 2_000, 40
LONGEST_SCALAR = 2_000
HEX_COLUMNS = 16

Json = str | int | float | bool | None | list["Json"] | list[tuple[str, "Json"]]


@dataclass(frozen=True, slots=True)
class Preview:
    """A field in one line. `note`: what is not seen in the text."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """One step of a walk through a JSON document: `opens` begins an object or array, `closes` ends it, else it is a value."""

    name: str = ""  # of a member, or the place in an array; empty: the document itself
    text: str = ""
    kind: str = ""  # string, number, true, false, null; of what opens: how many are in it
    opens: bool = False
    closes: bool = False


@dataclass(frozen=True, slots=True)
class HexRow:
    """So many bytes from `offset` on."""

    offset: str
    octets: str
    text: str


@dataclass(frozen=True, slots=True)
class Opened:
    """A key, a value or a header in every way in which it can be read."""

    tree: list[Node] | None
    text: str | None
    rows: list[HexRow]
    is_text_cut: bool
    is_hex_cut: bool


@dataclass(frozen=True, slots=True)
class OpenedHeader:
    """`opened`: None where there is nothing, or where headers before it have used up what a page shows."""

    name: str
    line: Preview
    opened: Opened | None


def opened(content: bytes, *, most_hex: int = LONGEST_HEX) -> Opened:
    """Its beginning as text and in hex; a tree only of the whole."""
    is_text_cut = len(content) > LONGEST_TEXT
    return Opened(
        tree=tree(content),
        text=text_of(content[:LONGEST_TEXT], is_cut=is_text_cut),
        rows=hex_rows(content[:most_hex]),
        is_text_cut=is_text_cut,
        is_hex_cut=len(content) > most_hex,
    )


def opened_headers(headers: Iterable[tuple[str, bytes | None]]) -> list[OpenedHeader]:
    """The first MOST_HEADERS in their order, as many of them opened as there is room for; the others in one line."""
    found, left, may_open = [], LONGEST_HEADERS, MOST_OPENED
    for name, content in islice(headers, MOST_HEADERS):
        size = len(content or b"")
        is_open = 0 < size <= left and may_open > 0
        left -= size if is_open else 0
        may_open -= is_open
        whole = opened(content or b"", most_hex=LONGEST_HEADER_HEX) if is_open else None
        found.append(OpenedHeader(name, preview(content), whole))
    return found


def preview(content: bytes | None, length: int | None = None) -> Preview:
    """`length`: of the whole, where `content` is its beginning."""
    if content is None:
        return Preview("", "null")
    if not content and not length:
        return Preview("", "empty")
    text = text_of(
        content[: 4 * LONGEST_PREVIEW],
        is_cut=len(content) > 4 * LONGEST_PREVIEW or len(content) != (length or len(content)),
    )
    if text is None:
        return Preview(content[:HEX_COLUMNS].hex(" "), "bytes that are no text")
    return Preview(_in_one_line(text))


def text_of(content: bytes, *, is_cut: bool = False) -> str | None:
    """As UTF-8; None: it is none. Of what is cut the last letter may be incomplete."""
    for tail in range(4 if is_cut else 1):
        try:
            return content[: len(content) - tail].decode()
        except UnicodeDecodeError:
            continue
    return None


def tree(content: bytes) -> list[Node] | None:
    """The document; None: it is no JSON object or array, or too large for a tree. Members that stand there twice do so here."""
    if len(content) > LARGEST_JSON or content.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        found: Json = json.loads(content, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return None
    return tree_of(found)


def tree_of(found: object) -> list[Node] | None:
    """The same of JSON that is there already; None: it is no object or array, or too large."""
    if not isinstance(found, dict | list):
        return None
    nodes = []
    try:
        for node in _walk("", found, 0):
            nodes.append(node)
            if len(nodes) > MOST_NODES:
                return None
    except (ValueError, RecursionError):
        return None
    return nodes


def json_text(found: object) -> str:
    """On lines, as long as text may be."""
    return _written(json.dumps(found, indent=2, ensure_ascii=False)[:LONGEST_TEXT])


def json_preview(found: object) -> str:
    """In one line."""
    return _in_one_line(_written(json.dumps(found, ensure_ascii=False)))


def hex_rows(content: bytes) -> list[HexRow]:
    """The first LONGEST_HEX bytes."""
    shown = content[:LONGEST_HEX]
    return [_hex_row(at, shown[at : at + HEX_COLUMNS]) for at in range(0, len(shown), HEX_COLUMNS)]


class _Members(list):  # type: ignore[type-arg]  # of pairs, in their order
    """An object of JSON."""


def _walk(name: str, found: object, depth: int) -> Iterator[Node]:
    if depth > DEEPEST:
        raise ValueError("deeper than anybody reads")
    if isinstance(found, dict):
        found = _Members(found.items())
    if not isinstance(found, list):
        yield _scalar(name, found)
        return
    members: Sequence[tuple[str, object]]
    if isinstance(found, _Members):
        members, kind = found, f"{len(found)} in {{}}"
    else:
        members, kind = [(str(place), each) for place, each in enumerate(found)], f"{len(found)} in []"
    yield Node(name, kind=kind, opens=True)
    for inner, each in members:
        yield from _walk(_written(inner), each, depth + 1)
    yield Node(closes=True)


def _written(text: str) -> str:
    r"""Half of a surrogate pair is no letter, and no page can hold it: as JSON writes it, such as \ud800."""
    return text.encode(errors="backslashreplace").decode()


def _scalar(name: str, found: object) -> Node:
    if isinstance(found, str):
        found = _written(found)
        shown = found if len(found) <= LONGEST_SCALAR else f"{found[:LONGEST_SCALAR]}…"
        return Node(name, shown, "string")
    if found is None or isinstance(found, bool):
        word = json.dumps(found)
        return Node(name, word, word)
    return Node(name, json.dumps(found)[:LONGEST_SCALAR], "number")


def _hex_row(at: int, octets: bytes) -> HexRow:
    text = "".join(chr(octet) if 0x20 <= octet < 0x7F else "." for octet in octets)
    return HexRow(f"{at:06x}", octets.hex(" "), text)


def _in_one_line(text: str) -> str:
    line = "".join(letter if letter.isprintable() else " " for letter in text[: LONGEST_PREVIEW + 1])
    return line if len(line) <= LONGEST_PREVIEW else f"{line[:LONGEST_PREVIEW]}…"
