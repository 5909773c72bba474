"""A page of messages as a file: JSON lines, or CSV for a spreadsheet.

Each field is text where it is UTF-8, and base64 where it is not: `…_encoding` says which (`utf-8`, `base64`), or `null` where
there is no field, `masked` where the role may not read it. `…_decoded` is the JSON that a schema makes of it; null, and in CSV
empty, where none does. `cut` says that a page holds only the beginning of the message, which no file does that is asked for. In
CSV what a spreadsheet would compute has an apostrophe before it.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse

from controlplane.core.text import cell_text
from controlplane.schemas.decoding import Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.messages.cutting import Shown

COLUMNS = (
    *("partition", "offset", "timestamp_ms", "key", "key_encoding", "key_decoded"),
    *("value", "value_encoding", "value_decoded", "headers", "cut", "source"),
)
UTF_8, BASE64, NULL, MASKED = "utf-8", "base64", "null", "masked"


def lines_of(messages: Iterable[Shown]) -> str:
    """An object a line. Headers are objects with name, value and encoding, in the order of the message."""
    return "".join(_json(_row(message)) + "\n" for message in messages)


def csv_of(messages: Iterable[Shown]) -> str:
    """A header and a row for each message; its headers are one cell of JSON."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    for message in messages:
        row = _row(message)
        row["headers"] = _json(row["headers"]) if row["headers"] else ""
        row |= {name: "" if row[name] is None else _json(row[name]) for name in ("key_decoded", "value_decoded")}
        writer.writerow([cell_text(each) if isinstance(each, str) else each for each in map(row.get, COLUMNS)])
    return written.getvalue()


def _row(message: Shown) -> dict[str, Any]:
    key, key_encoding = _field(message.key, message)
    value, value_encoding = _field(message.value, message)
    return {
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        "key": key,
        "key_encoding": key_encoding,
        "key_decoded": _decoded(message, Part.KEY),
        "value": value,
        "value_encoding": value_encoding,
        "value_decoded": _decoded(message, Part.VALUE),
        "headers": [_header(name, content) for name, content in message.headers],
        "cut": message.is_cut,
        "source": message.load_id or "topic",
    }


def _field(content: bytes | None, message: Shown) -> tuple[str | None, str]:
    return (None, MASKED) if message.is_masked else _written(content)


def _decoded(message: Shown, part: Part) -> Any:
    found = message.decoded.get(part)
    return None if found is None or message.is_masked else found.value


def _header(name: str, content: bytes | None) -> dict[str, str | None]:
    text, encoding = _written(content)
    return {"name": name, "value": text, "encoding": encoding}


def _written(content: bytes | None) -> tuple[str | None, str]:
    if content is None:
        return None, NULL
    try:
        return content.decode(), UTF_8
    except UnicodeDecodeError:
        return base64.b64encode(content).decode(), BASE64


def _json(found: object) -> str:
    r"""In one line; half of a surrogate pair, which no file can hold, as JSON may write it, such as \ud800."""
    return json.dumps(found, ensure_ascii=False).encode(errors="backslashreplace").decode()


FILES = {
    "csv": ("text/csv; charset=utf-8", csv_of),
    "jsonl": ("application/x-ndjson; charset=utf-8", lines_of),
}
"""By the end of a file's name: the type of its content, and who writes it."""


def file_of(messages: Iterable[Shown], topic: str, form: str) -> HttpResponse:
    """A browser keeps it and does not show it. `form` is one of FILES."""
    content_type, write = FILES[form]
    return HttpResponse(
        write(messages),
        content_type=content_type,
        headers={
            "Content-Disposition": f'attachment; filename="{topic}-messages.{form}"',
            "X-Content-Type-Options": "nosniff",
        },
    )
