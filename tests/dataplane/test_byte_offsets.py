"""Where a field stands in bytes is known by `protocol` and `records` alone (docs/decisions: templates)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

DATAPLANE = Path(__file__).parents[2] / "dataplane"
PACKAGES = ("handlers", "requests", "replication", "peers")
FILES = sorted(path for package in PACKAGES for path in (DATAPLANE / package).rglob("*.py"))
PACKING = {"unpack", "unpack_from", "iter_unpack", "pack", "pack_into", "to_bytes", "from_bytes", "calcsize"}
BYTES = {
    "batch",
    "body",
    "buffer",
    "data",
    "frame",
    "head",
    "header_bytes",
    "payload",
    "raw",
    "records",
    "tail",
    "view",
}
"""What bytes are called here: of them not even the first is taken by its number."""
OTHERWISE = {
    ("handlers/admin/resources.py", "name[:20]"),  # a text for people
}
"""What looks like it and counts no bytes."""


def offsets(tree):
    """(line, text) of whatever counts bytes: `struct`, numbers in a slice, a number as the place in what is called bytes."""
    numbers = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and any(_is_number(part) for part in ast.walk(node.value))
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name == "struct" for alias in node.names):
            yield node.lineno, "import struct"
        elif isinstance(node, ast.ImportFrom) and node.module == "struct":
            yield node.lineno, "from struct import"
        elif isinstance(node, ast.Attribute) and node.attr in PACKING:
            yield node.lineno, f".{node.attr}"
        elif isinstance(node, ast.Subscript) and _counts(node, numbers):
            yield node.lineno, ast.unparse(node)


def _counts(node, numbers):
    """A literal above 1 in a slice; in a subscript of bytes any number, also one that this file gives a name."""
    of_bytes = isinstance(node.value, ast.Name) and node.value.id in BYTES
    if not isinstance(node.slice, ast.Slice) and not of_bytes:
        return False
    return any(
        (_is_number(part) and (of_bytes or abs(part.value) > 1))
        or (of_bytes and isinstance(part, ast.Name) and part.id in numbers)
        for part in ast.walk(node.slice)
    )


def _is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) is int


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATAPLANE)))
def test_no_file_outside_the_protocol_counts_bytes(path):
    name = str(path.relative_to(DATAPLANE))
    found = list(offsets(ast.parse(path.read_text(encoding="utf-8"))))
    assert [(line, text) for line, text in found if (name, text) not in OTHERWISE] == []


@pytest.mark.parametrize(
    "text",
    [
        "import struct",
        "from struct import Struct",
        "x = HEADER.unpack_from(frame)",
        "x = n.to_bytes(4)",
        "x = int.from_bytes(b)",
        "x = anything[n : n + 4]",
        "x = anything[8:end]",
        "x = anything[-3:]",
        "x = frame[1]",
        "x = frame[1:]",
        "_AT = 16\nx = records[_AT]",
        "_AT, _TO = 16, 20\nx = frame[_AT:]",
    ],
)
def test_what_counts_bytes_is_seen(text):
    assert list(offsets(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "x = topics[0]",
        "_STEP = 9\nx = rows[n : n + _STEP]",
        "x = rows[-1]",
        "x = rows[begin : begin + 1]",
        "x = frame[begin:end]",
        "x = by_key[7]",
    ],
)
def test_what_does_not_is_let_be(text):
    assert not list(offsets(ast.parse(text)))


def test_the_packages_are_where_they_were():
    assert len(FILES) > 80
