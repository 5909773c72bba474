"""The tree of an in-memory ZooKeeper: nodes, versions, ephemerals, sequential names, multi. No time, no network.

Every change is reported as events (kind, path), in the order in which ZooKeeper would fire watches for them:

    created   somebody may watch a node that did not exist
    changed   its data
    deleted   the node itself
    children  its list of children
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataplane.doors import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SetData,
    Stat,
    ZooKeeperError,
)

Event = tuple[str, str]


@dataclass(slots=True)
class Node:
    data: bytes
    czxid: int
    mzxid: int
    owner: int = 0
    version: int = 0
    next_sequence: int = 0
    child_changes: int = 0
    children: dict[str, None] = field(default_factory=dict)

    @property
    def stat(self) -> Stat:
        return Stat(self.version, self.czxid, self.mzxid, self.owner, self.child_changes)


class Tree:
    def __init__(self) -> None:
        self.zxid = 0
        self._nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}
        self._undo: list[Callable[[], None]] = []
        self._events: list[Event] = []

    # --- reading --------------------------------------------------------------------------------------------------

    def node(self, path: str) -> Node:
        _check_path(path)
        node = self._nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        return node

    def find(self, path: str) -> Node | None:
        _check_path(path)
        return self._nodes.get(path)

    def children(self, path: str) -> list[str]:
        return sorted(self.node(path).children)

    def ephemerals(self, owner: int) -> list[str]:
        return [path for path, node in self._nodes.items() if node.owner == owner]

    def dump(self) -> dict[str, bytes]:
        """All data by path: for assertions."""
        return {path: node.data for path, node in sorted(self._nodes.items())}

    # --- writing --------------------------------------------------------------------------------------------------

    def transact(self, operations: Sequence[Operation], session: int) -> tuple[list[Any], list[Event]]:
        """All or nothing: results and events. Raises the first error, with the tree as it was."""
        self.zxid += 1  # a failed transaction uses up a number too
        self._undo, self._events = [], []
        results: list[Any] = []
        try:
            for operation in operations:
                results.append(self._apply(operation, session))  # noqa: PERF401 - undone step by step
        except ZooKeeperError:
            for step in reversed(self._undo):
                step()
            raise
        return results, self._events

    def create_parents(self, path: str) -> list[Event]:
        """Missing ancestors of a path, persistent and empty."""
        events: list[Event] = []
        names = path.strip("/").split("/")[:-1]
        for depth in range(1, len(names) + 1):
            ancestor = "/" + "/".join(names[:depth])
            if ancestor not in self._nodes:
                events += self.transact([Create(ancestor)], 0)[1]
        return events

    def _apply(self, operation: Operation, session: int) -> Any:
        match operation:
            case Create():
                return self._create(operation, session)
            case SetData():
                return self._set(operation)
            case Delete():
                return self._delete(operation)
            case Check():
                self._at_version(operation.path, operation.version)
                return None

    def _create(self, operation: Create, session: int) -> str:
        path = operation.path
        parent_path = _parent(path)
        parent = self.node(parent_path)
        if parent.owner:
            raise ZooKeeperError("ephemeral nodes have no children")
        if operation.sequential:
            path = f"{path}{parent.next_sequence:010d}"
        _check_path(path)
        if path in self._nodes:
            raise NodeExistsError(path)
        before = parent.next_sequence
        parent.next_sequence += 1  # ZooKeeper counts changes of the children, whatever their names
        parent.children[_name(path)] = None
        parent.child_changes += 1
        self._nodes[path] = Node(bytes(operation.data), self.zxid, self.zxid, session if operation.ephemeral else 0)
        self._events += [("created", path), ("children", parent_path)]

        def undo() -> None:
            parent.next_sequence = before
            parent.child_changes -= 1
            del parent.children[_name(path)], self._nodes[path]

        self._undo.append(undo)
        return path

    def _set(self, operation: SetData) -> Stat:
        node = self._at_version(operation.path, operation.version)
        before = (node.data, node.version, node.mzxid)
        node.data, node.version, node.mzxid = bytes(operation.data), node.version + 1, self.zxid
        self._events.append(("changed", operation.path))

        def undo() -> None:
            node.data, node.version, node.mzxid = before

        self._undo.append(undo)
        return node.stat

    def _delete(self, operation: Delete) -> None:
        path = operation.path
        node = self._at_version(path, operation.version)
        if node.children:
            raise NotEmptyError(path)
        parent = self.node(_parent(path))
        position = dict(parent.children)
        del parent.children[_name(path)], self._nodes[path]
        parent.child_changes += 1
        self._events += [("deleted", path), ("children", _parent(path))]

        def undo() -> None:
            parent.child_changes -= 1
            parent.children.clear()
            parent.children.update(position)
            self._nodes[path] = node

        self._undo.append(undo)

    def _at_version(self, path: str, version: int) -> Node:
        node = self.node(path)
        if version not in (-1, node.version):
            raise BadVersionError(f"{path} is at {node.version}, not {version}")
        return node


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _check_path(path: str) -> None:
    if not path.startswith("/") or (path != "/" and path.endswith("/")) or "//" in path:
        raise ValueError(f"not a path: {path!r}")
