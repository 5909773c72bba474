"""The differences that are meant: accepted.tsv, each row one field of one step with both values and the reason.

    api[ v0-3]   scenario   step   path   ours   apache   reason

All but the reason are patterns ("*" any text, "?" any character). A path names its field, and the values say what the
difference is: another answer at the same place is a new difference. Rows that nothing matched are said, so that the list
does not outlive its reasons.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance.results import read_tsv

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

FILE = Path(__file__).with_name("accepted.tsv")
_used: set[tuple[str, ...]] = set()


def reason_for(api: str, version: int, *said: str, file: Path = FILE) -> str:
    """Why a difference is meant; empty where it is not. `said`: scenario, step, path, our value, Apache Kafka's."""
    for row in rows(file):
        name, _, versions = row[0].partition(" v")
        if name == api and _has(versions, version) and all(map(fnmatchcase, said, map(_literal, row[1:-1]))):
            _used.add(row)
            return row[-1]
    return ""


def unused(apis: Container[str], file: Path = FILE) -> Iterator[tuple[str, ...]]:
    """Rows on one of these APIs that nothing has matched."""
    return (row for row in rows(file) if row not in _used and row[0].partition(" v")[0] in apis)


@cache
def rows(file: Path = FILE) -> list[tuple[str, ...]]:
    """As they stand in the file."""
    return [tuple(row) for row in read_tsv(file)]


def _has(versions: str, version: int) -> bool:
    low, _, high = versions.partition("-")
    return not versions or int(low) <= version <= int(high or low)


def _literal(pattern: str) -> str:
    """Brackets stand for themselves."""
    return pattern.replace("[", "[[]")
