"""A Delta table into a bucket, version by version, so that whoever reads the bucket meanwhile finds a table that is whole.

The bucket is only ever written to. Of a version its data files come first, then its commit, then its checkpoint if it has one,
and then `_last_checkpoint`. Each of these is one object, which is there whole or not at all, so that a kill leaves a table
of an earlier version, and files that nothing names yet. Writing again what is there changes nothing.

A *plain* copy is for readers of Parquet who know nothing of Delta: data files alone, without the log that says which of them
count. So no version that it copies may remove a file, which it refuses; a load with `--once` makes none.

One thing stands against a whole copy: VACUUM removes files at the source that only old versions have. When such a version is
copied late, its files are gone. It then goes into one *stretch* with those up to the one that removes the last of these files;
files of a stretch are written first, and then its commits one after the other. Of the versions within it the copy has as much as
the source. A reader that comes between two of these commits misses a file, as it would if it asked the source for that version.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from controlplane.lake.commitlog import HINT, Commit, CommitLog, commit_path
from controlplane.lake.errors import LakeError
from controlplane.lake.report import Reporter

THREADS = 4
SAY_EVERY_S = 5.0


class Target(Protocol):
    """What is written to: `bucket.Bucket`."""

    def put(self, key: str, content: BinaryIO) -> int:
        """Whole or not at all. Bytes. Raises LakeError."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Versions whose files are written before the first of their commits: one, where VACUUM has not been."""

    versions: tuple[int, ...]
    files: tuple[str, ...]


@dataclass(slots=True)
class Removals:
    """Which versions remove a file; the log is read for it when the first file is missing."""

    log: CommitLog
    versions: range
    _found: dict[str, list[int]] = field(default_factory=dict)

    def first(self, path: str, after: int) -> int:
        """Raises LakeError where the file is not removed, and so should be there."""
        if not self._found:
            for version in self.versions:
                for removed in self.log.commit(version).removed:
                    self._found.setdefault(removed, []).append(version)
        removing = next((version for version in self._found.get(path, ()) if version > after), None)
        if removing is None:
            raise LakeError(f"{path} is missing in the table, and version {self.versions[-1]} still has it")
        return removing


def stretches(log: CommitLog, versions: range) -> Iterator[Stretch]:
    """In order. Raises LakeError."""
    removals = Removals(log, versions)
    begun: list[Commit] = []
    files: dict[str, None] = {}
    end = -1
    for version in versions:
        commit = log.commit(version)
        begun.append(commit)
        for path in commit.added:
            if log.has(path):
                files[path] = None
            else:
                end = max(end, removals.first(path, version))
        if version >= end:
            yield Stretch(tuple(each.version for each in begun), tuple(files))
            begun, files = [], {}


@dataclass(slots=True)
class Copy:
    """One run. `prefix`: the table's folder in the bucket."""

    log: CommitLog
    target: Target
    prefix: str
    reporter: Reporter
    until: Path | None = None  # once this file is there, the copy ends after the versions that it is at
    is_plain: bool = False  # data files alone
    files: int = 0
    bytes: int = 0

    def run(self, after: int = -1) -> str:
        """What follows this version. A sentence of how it went. Raises LakeError, OSError."""
        versions = self.log.versions(after)
        if after >= 0:
            self.reporter.note(version=after)
        if not versions:
            return f"nothing to copy after version {after}"
        last = after
        for stretch in stretches(self.log, versions):
            self._copy(stretch, versions[-1])
            last = stretch.versions[-1]
            if last < versions[-1] and self.until is not None and self.until.exists():
                self.reporter.cut()
                break
        return f"copied up to version {last}: {_files(self.files)}, {self.bytes:,} bytes"

    def _copy(self, stretch: Stretch, newest: int) -> None:
        last = stretch.versions[-1]
        if self.is_plain and any(self.log.commit(version).removed for version in stretch.versions):
            raise LakeError(f"version {last} replaces rows, which a copy of files alone cannot take back")
        self.reporter.say(f"version {last} of {newest}: {_files(len(stretch.files))}")
        with ThreadPoolExecutor(THREADS, thread_name_prefix="copy") as pool:
            self._put_all(pool, stretch.files, f"version {last} of {newest}")
        for version in stretch.versions:
            if not self.is_plain:
                self._put_commit(version)
        self.reporter.note(version=last)
        self.reporter.say(f"version {last} of {newest} copied")

    def _put_all(self, pool: ThreadPoolExecutor, files: Sequence[str], what: str) -> None:
        """At the first that fails, those that wait are given up."""
        begun = [pool.submit(self._put_file, path) for path in files]
        said_s = time.monotonic()
        for number, future in enumerate(as_completed(begun), start=1):
            try:
                self.bytes += future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            self.files += 1
            if time.monotonic() - said_s >= SAY_EVERY_S:
                self.reporter.say(f"{what}: {number:,} of {_files(len(files))}")
                said_s = time.monotonic()

    def _put_commit(self, version: int) -> None:
        """And its checkpoint. `_last_checkpoint` is written as it was read: the file may speak of another one by now."""
        self._put_file(commit_path(version))
        checkpoint = self.log.checkpoint(version)
        for path in checkpoint:
            self._put_file(path)
        hint = self.log.hint(version) if checkpoint else None
        if hint is not None:
            self.target.put(self._key(HINT), io.BytesIO(hint))

    def _put_file(self, path: str) -> int:
        try:
            content = self.log.open(path)
        except FileNotFoundError:
            raise LakeError(f"{path} was removed while the table was copied: start again") from None
        with content:
            return self.target.put(self._key(path), content)

    def _key(self, path: str) -> str:
        return f"{self.prefix}/{path}"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
