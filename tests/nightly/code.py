"""Which state of the code is tested: the commit, and where something is not committed a digest of that."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def state(root: Path = ROOT) -> str:
    """As "8c1f…", or "8c1f…+4be0…" with changes. Two states with equal names are equal but for what git ignores."""
    commit = _git(root, "rev-parse", "HEAD").decode().strip()
    digest = hashlib.sha256(_git(root, "diff", "--binary", "HEAD"))
    clean = digest.hexdigest()
    for name in _git(root, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0"):
        path = root / name.decode()
        if path.is_file() and not path.is_symlink():
            digest.update(name + b"\0" + path.read_bytes())
    changed = digest.hexdigest()
    return commit if changed == clean == hashlib.sha256().hexdigest() else f"{commit}+{changed[:12]}"


def number_of(state: str) -> int:
    """One that another state does not have: where seeds begin, so that each commit is tried with others."""
    return int(hashlib.sha256(state.encode()).hexdigest()[:6], 16)


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout
