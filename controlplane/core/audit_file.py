"""The audit trail as CSV, with the columns of REST; `detail` is JSON, `before` and `after` are its values for people.

It may be long: rows are read some at a time, each time by a query of its own, and written as they come. A reader that takes
its time holds no query open, and what is written meanwhile is not in the file. A text that a spreadsheet would compute
has an apostrophe before it.
"""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

from django.http import StreamingHttpResponse

from controlplane.core.audit_chain import moment_text
from controlplane.core.audit_sides import side_text
from controlplane.core.text import cell_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

    from controlplane.core.models import AuditEntry

COLUMNS = (
    "id",
    "at",
    "actor",
    "action",
    "target",
    "detail",
    "address",
    "key",
    "request_id",
    "number",
    "hash",
    "before",
    "after",
)
AT_ONCE = 1_000
CONTENT_TYPE = "text/csv"


def audit_file(rows: QuerySet[AuditEntry]) -> StreamingHttpResponse:
    """Of `selectors.audit_list`, the newest first, to be saved: browsers shall not make anything else of it."""
    return StreamingHttpResponse(
        _lines(rows),
        content_type=f"{CONTENT_TYPE}; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="audit.csv"', "X-Content-Type-Options": "nosniff"},
    )


def _lines(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    """Some lines a piece."""
    written = _Written()
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    last = None
    while True:
        found = list((rows if last is None else rows.filter(pk__lt=last))[:AT_ONCE])
        writer.writerows(map(_row, found))
        yield written.taken()
        if len(found) < AT_ONCE:
            return
        last = found[-1].pk


def _row(entry: AuditEntry) -> list[str]:
    detail = json.dumps(entry.detail, ensure_ascii=False)
    texts = (entry.actor, entry.action, entry.target, detail, entry.address, entry.key, entry.request_id)
    number = "" if entry.number is None else str(entry.number)
    both = map(side_text, (entry.sides.before, entry.sides.after))
    return [str(entry.pk), moment_text(entry.at), *map(cell_text, texts), number, entry.hash, *map(cell_text, both)]


class _Written:
    """What csv writes to: it asks for no more than `write`."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def write(self, text: str, /) -> None:
        self._texts.append(text)

    def taken(self) -> str:
        """What was written since it was last taken."""
        text = "".join(self._texts)
        self._texts.clear()
        return text
