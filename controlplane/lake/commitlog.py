"""The log of a Delta table in a folder of this machine: commits and checkpoints, and which files they name.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md: `_delta_log/00000000000000000007.json` is version 7, an action a
line. Its files are named by `add` and `remove`, relative to the table and percent-encoded. A checkpoint is what versions up
to it come to, and `_last_checkpoint` says which is the newest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from controlplane.lake.errors import LakeError

LOG = "_delta_log"
HINT = f"{LOG}/_last_checkpoint"
FEATURES = {"columnMapping", "timestampNtz", "typeWidening", "vacuumProtocolCheck", "variantType"}
"""Of the protocol's, which need no files but those that `add` names. Others do: deletion vectors, checkpoints in two layers."""
MOST_BY_VERSION = 2
"""Readers of a higher version go by features."""

_COMMIT = re.compile(r"(\d{20})\.json", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Commit:
    """Files as their paths below the table, decoded."""

    version: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def below(named: str) -> str:
    """The path that a log names, decoded. Raises LakeError if it is not one below the table."""
    try:
        path = unquote(named, errors="strict")
    except UnicodeDecodeError:
        path = ""
    if _SCHEME.match(named) or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise LakeError(f"the log names a file that is not below the table: {named[:200]!r}")
    return path


def commit_path(version: int) -> str:
    """Below the table."""
    return f"{LOG}/{version:020}.json"


class CommitLog:
    """Of the table in this folder. All raise OSError as well."""

    def __init__(self, table: Path) -> None:
        self._table = table.resolve()

    def versions(self, after: int) -> range:
        """Those after this one, without a gap. Raises LakeError."""
        folder = self._table / LOG
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        found = sorted(int(match[1]) for match in map(_COMMIT.fullmatch, names) if match)
        if not found:
            raise LakeError("there is no Delta table to copy")
        if found[-1] < after:
            raise LakeError(f"the table ends at version {found[-1]}, before {after}: it is not the one that was copied")
        wanted = range(after + 1, found[-1] + 1)
        missing = set(wanted).difference(found)
        if missing:
            raise LakeError(f"version {min(missing)} is missing in the log of the table")
        return wanted

    def commit(self, version: int) -> Commit:
        """Raises LakeError where it has more than a copy can have."""
        added: list[str] = []
        removed: list[str] = []
        for action in self._actions(version):
            if (add := action.get("add")) is not None:
                if add.get("deletionVector") is not None:
                    raise LakeError("the table has deletion vectors, which are not copied")
                added.append(below(add["path"]))
            elif (remove := action.get("remove")) is not None:
                removed.append(below(remove["path"]))
            elif (protocol := action.get("protocol")) is not None:
                _check(protocol)
        return Commit(version, tuple(added), tuple(removed))

    def _actions(self, version: int) -> Iterator[dict[str, Any]]:
        with self.open(commit_path(version)) as lines:
            try:
                yield from (json.loads(line) for line in lines if line.strip())
            except ValueError:
                raise LakeError(f"version {version} of the log is not JSON") from None

    def checkpoint(self, version: int) -> list[str]:
        """Its files, below the table; none where there is no checkpoint of this version."""
        return sorted(f"{LOG}/{path.name}" for path in (self._table / LOG).glob(f"{version:020}.checkpoint*.parquet"))

    def hint(self, version: int) -> bytes | None:
        """What `_last_checkpoint` holds, if it speaks of this version."""
        try:
            content = (self._table / HINT).read_bytes()
            return content if json.loads(content)["version"] == version else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None  # a reader does without it as well

    def has(self, path: str) -> bool:
        """Whether the file is still there."""
        return (self._table / path).is_file()

    def open(self, path: str) -> BinaryIO:
        """Raises LakeError if a link leads out of the table."""
        file = (self._table / path).resolve()
        if not file.is_relative_to(self._table):
            raise LakeError(f"{path} leads out of the table")
        return file.open("rb")


def _check(protocol: dict[str, Any]) -> None:
    features = set(protocol.get("readerFeatures") or ()) - FEATURES
    if protocol.get("minReaderVersion", 1) > MOST_BY_VERSION and features:
        raise LakeError(f"the table has features that are not copied: {', '.join(sorted(map(str, features)))}")
