"""An index of what a broker answers: API key -> handler -> the tests that ask for it. ``python -m tests.api_index`` prints it.

A test file counts for an API where it names the request (``ElectLeadersRequest``) or the handler's function: nobody can ask
without one of the two. Files that only encode and decode messages (tests/dataplane/protocol) ask nobody, and do not count.
Names are read from the source, so that nothing is run: the index says where to look, not that what is there is enough.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from dataplane.handlers.table import HANDLERS, Handler

ROOT = Path(__file__).parent.parent
CODECS = ROOT / "dataplane" / "protocol"


@dataclass(frozen=True, slots=True)
class Row:
    """One API. `handler` is ``module.function`` below `dataplane.handlers`; `tests` are paths below `tests`, sorted."""

    key: int
    name: str
    handler: str
    tests: tuple[str, ...]


def rows() -> list[Row]:
    """Every API of the table, in order of the keys."""
    named = {path: _names(path) for path in sorted(ROOT.rglob("test_*.py")) if CODECS not in path.parents}
    return [_row(handler, named) for _, handler in sorted(HANDLERS.items())]


def text(index: list[Row]) -> str:
    """The index for people: a line for each API, and below it its tests."""
    lines = []
    for row in index:
        lines.append(f"{row.key:>3} {row.name:<30} {row.handler}")
        lines += [f"      {test}" for test in row.tests] or ["      (none)"]
    return "\n".join(lines)


def _row(handler: Handler, named: dict[Path, frozenset[str]]) -> Row:
    module, function = _function(handler)
    wanted = {handler.api.request.__name__, function}
    tests = tuple(str(path.relative_to(ROOT)) for path, names in named.items() if wanted & names)
    return Row(int(handler.api.key), handler.api.key.name, f"{module}.{function}", tests)


def _function(handler: Handler) -> tuple[str, str]:
    """Module and name of the function that answers. ApiVersions is handed the table, by a lambda that calls it."""
    code = handler.handle.__code__
    if code.co_name != "<lambda>":
        return handler.handle.__module__.removeprefix("dataplane.handlers."), code.co_name
    module, function = code.co_names[:2]
    return module, function


def _names(path: Path) -> frozenset[str]:
    """Every name that a file uses: plain, as an attribute, or imported."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
    return frozenset(found)
