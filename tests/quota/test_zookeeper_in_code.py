"""No code knows a node of ZooKeeper that the table does not, and nobody makes a client beside `quota.zookeeper`."""

from __future__ import annotations

import ast
from pathlib import Path

from quota.contracts.zookeeper import ROWS, row_of

ROOT = Path(__file__).parents[2]
PRODUCT = ("quota", "dataplane", "controlplane")


def sources():
    for top in PRODUCT:
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


def test_every_path_that_is_written_in_the_code_has_a_row():
    """A new directory below ours that nobody has put into the table: text that begins as one of its top nodes does."""
    tops = {row.pattern.split("/")[1] for row in ROWS} - {"", "config", "zookeeper"}
    found, unlisted = 0, []
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value.startswith("/"):
                continue
            path = node.value.rstrip("/")
            if (
                path[1:].split("/")[0] in tops
                and "\n" not in path
                and " " not in path
                and not path.startswith("/brokers/{")
            ):
                found += 1
                if row_of(path) is None and not _is_of_the_web(name):
                    unlisted.append((name, path))
    assert found > 15
    assert unlisted == []


def _is_of_the_web(name):
    return name.startswith("controlplane/") and not name.startswith("controlplane/clusters/")


def test_clients_of_zookeeper_are_made_in_one_place():
    made = {
        name
        for name, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name | ast.Attribute | ast.alias)
        and "KazooClient" in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", ""))
    }
    assert made == {"quota/zookeeper/client.py"}
