"""Walking a cluster's tree in ZooKeeper, to give every node the ACL of the table, to look whether it has it, or to open all.

A node's ACL is set before its children are listed, so whatever anybody may have made below it while it was open is met on the
way. Each step can be repeated and a node that is right is only looked at: interrupted, the same again goes on where it was. An
ACL is replaced at the version at which it was read; whoever is faster is looked at again.

Nodes without a row are left as they are, with everything below them, and named. So is the root itself, with ZooKeeper's own
nodes, where others have nodes beside ours: it is theirs too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kazoo.exceptions import BadVersionError, NoAuthError, NoNodeError
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL

from quota.contracts.zookeeper import DIRECTORIES, ROOT, UNTOUCHED, Row, row_of
from quota.contracts.zookeeper_login import OPEN
from quota.zookeeper.client import Client, acl_of, others_at

TOGETHER = 200
"""Requests that are under way at once."""
ANSWER_WITHIN_S = 30.0
_SYSTEM = "/zookeeper"


class Wanted(Enum):
    """What nodes shall be for."""

    CLOSED = "closed"  # whom the table names
    OPEN = "open"  # everybody
    LOOKED_AT = "looked at"  # as they are: it is only said which are not closed


@dataclass
class Report:
    """What a walk has met, by row of the table."""

    nodes: Counter[str] = field(default_factory=Counter)
    different: Counter[str] = field(
        default_factory=Counter
    )  # that were not as wanted; mended, if it was not only looked
    examples: list[str] = field(default_factory=list)  # paths of different ones, the first few
    unlisted: list[str] = field(default_factory=list)  # that no row is about: left as they are
    refused: list[str] = field(default_factory=list)  # where ZooKeeper does not let us: another secret
    shared: list[str] = field(default_factory=list)  # top nodes of others, because of which the root is left as it is

    @property
    def looked_at(self) -> int:
        return sum(self.nodes.values())

    @property
    def differing(self) -> int:
        return sum(self.different.values())


_EXAMPLES = 20


def walk(client: Client, wanted: Wanted, say: Callable[[Report], None] = lambda _: None) -> Report:
    """Over the whole tree; `say` is called now and then. Raises KazooException, KazooTimeoutError: run it again."""
    report = Report()
    client.wait_founded(ANSWER_WITHIN_S)
    with suppress(NoAuthError):  # it will be among those that refuse
        client.ensure_path(client.whole(ROOT))
        report.shared = others_at(client)
    paths = [ROOT]
    while paths:
        batch, paths = paths[-TOGETHER:], paths[:-TOGETHER]
        paths += _Batch(client, wanted, report).of(batch)
        say(report)
    if wanted is Wanted.CLOSED:
        for directory in DIRECTORIES:
            client.ensure_path(client.whole(directory))
    return report


class _Batch:
    """Some nodes, each question asked of all of them at once."""

    def __init__(self, client: Client, wanted: Wanted, report: Report) -> None:
        self._client, self._wanted, self._report = client, wanted, report

    def of(self, paths: Sequence[str]) -> list[str]:
        """Puts these nodes right; what is to be walked next: their children, and what somebody else changed meanwhile."""
        rows = {path: row for path in paths if (row := self._row(path)) is not None}
        again, parents, mended = [], [], []
        for path, (acl, stat) in self._each(list(rows), self._client.get_acls_async):
            row = rows[path]
            if self._is_right(path, row, acl):
                parents += [path] if stat.numChildren else []
            else:
                mended.append((path, row, stat))
        for (path, _, _), changed in zip(mended, self._mend(mended), strict=True):
            if changed is None:
                again.append(path)
            elif changed:
                parents.append(path)
        return again + self._children(parents)

    def _row(self, path: str) -> Row | None:
        row = row_of(path)
        if row is None and path not in UNTOUCHED and path.lstrip("/") not in self._report.shared:
            self._report.unlisted.append(path)
        return row

    def _is_right(self, path: str, row: Row, acl: Sequence[ACL]) -> bool:
        report = self._report
        report.nodes[row.pattern] += 1
        is_theirs_too = path == ROOT or path.startswith(_SYSTEM)
        if sorted(acl) == sorted(self._acl(row)) or (report.shared and is_theirs_too):
            return True
        report.different[row.pattern] += 1
        if len(report.examples) < _EXAMPLES:
            report.examples.append(path)
        return False

    def _acl(self, row: Row) -> list[ACL]:
        return acl_of(OPEN if self._wanted is Wanted.OPEN else self._client.access.closed_entries(row))

    def _mend(self, nodes: Sequence[tuple[str, Row, ZnodeStat]]) -> list[bool | None]:
        """Of each whether to go on below it; None: somebody else was faster."""
        if self._wanted is Wanted.LOOKED_AT:
            return [bool(stat.numChildren) for _, _, stat in nodes]
        asked = [
            self._client.set_acls_async(self._client.whole(path), self._acl(row), stat.aversion)
            for path, row, stat in nodes
        ]
        return [self._mended(path, row, each) for (path, row, _), each in zip(nodes, asked, strict=True)]

    def _mended(self, path: str, row: Row, asked: Any) -> bool | None:
        report = self._report
        try:
            asked.get(timeout=ANSWER_WITHIN_S)
        except NoNodeError:
            return False
        except NoAuthError:
            report.refused.append(path)
            return False
        except BadVersionError:
            report.nodes[row.pattern] -= 1
            report.different[row.pattern] -= 1
            return None
        return True

    def _children(self, parents: Sequence[str]) -> list[str]:
        found = self._each(parents, self._client.get_children_async)
        return [f"{path.rstrip('/')}/{name}" for path, names in found for name in names]

    def _each(self, paths: Sequence[str], ask: Callable[[str], Any]) -> list[tuple[str, Any]]:
        """What is answered of each node, without those that are gone, or that we may not look at."""
        asked = [(path, ask(self._client.whole(path))) for path in paths]
        answers = []
        for path, each in asked:
            try:
                answers.append((path, each.get(timeout=ANSWER_WITHIN_S)))
            except NoNodeError:
                continue
            except NoAuthError:
                self._report.refused.append(path)
        return answers
