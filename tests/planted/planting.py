"""A copy of the code in which a hole is, for as long as a test looks for it.

What git knows of is copied, and what is new and not ignored: the state of the folder, not of the last commit. Tests run in the
copy, with the interpreter that runs this; the folder itself is never changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.planted.holes import Hole

ROOT = Path(__file__).parent.parent.parent
TEST_LIMIT_S = 300.0
NO_TESTS = 5
"""pytest's exit status where it found none; 1 is that some failed."""
_FAILED = 1
_STORES = ("DATABASE_URL", "REDIS_URL", "ZOOKEEPER_HOSTS", "SPARK_MASTER")


class MisfitError(Exception):
    """A hole whose place is not in the code as the table has it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What tests said."""

    status: int  # pytest's; -1: it took too long
    said: str  # the first failure, or the last line
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether tests have failed: an error in collecting them, or that there are none, is no find."""
        return self.status == _FAILED


def changed(hole: Hole, text: str) -> str:
    """The file with the hole in it. Raises MisfitError."""
    count = text.count(hole.before)
    if count != 1:
        raise MisfitError(f"{hole.name}: its place is {count} times in {hole.path}")
    return text.replace(hole.before, hole.after)


def copy_to(folder: Path) -> None:
    """A new copy of the code."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


@contextmanager
def planted(hole: Hole, folder: Path) -> Iterator[None]:
    """The hole is in the copy. Raises MisfitError."""
    place = folder / hole.path
    whole = place.read_text()
    place.write_text(changed(hole, whole))
    try:
        yield
    finally:
        place.write_text(whole)


def look(tests: tuple[str, ...], folder: Path) -> Looked:
    """Run them in the copy, in an order that is always the same."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", *tests]
    environment = {name: value for name, value in os.environ.items() if name not in _STORES}
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--tb=line"],
            cwd=folder,
            env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=TEST_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Looked(-1, f"not over after {TEST_LIMIT_S:.0f} s", time.monotonic() - began)
    return Looked(done.returncode, _first_failure(done.stdout), time.monotonic() - began)


def _first_failure(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = next((line for line in lines if line.startswith(("FAILED tests", "ERROR tests"))), "")
    return found or (lines[-1] if lines else "it said nothing")
