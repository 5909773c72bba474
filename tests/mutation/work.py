"""The folder in which an area is worked on, var/mutation/<area>: links to the code, mutmut's settings, its copies and results.

    mutants/<file>.py.meta      mutmut's: what the tests' exit status was, by the mutant's name; null: not tried

A folder is of one state of the code. It is made anew for another, since mutmut keeps verdicts of tests that have changed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.mutation.areas import Area

ROOT = Path(__file__).parents[2]
_SOURCES = ("controlplane", "dataplane", "quota")
_TOOL = Path(__file__).with_name("tool.py")
_LOOK_EVERY_S = 5.0
_PYTEST = [
    *("-p", "tests.mutation.plugin", "--hypothesis-profile=mutation"),
    *("-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:django", "--noconftest"),
    *("-o", "timeout=0"),  # mutmut has its own bound, by what the tests take on right code
]
_TEXTS = (r"raise DecodeError\(",)
"""Lines that are left alone: words that only a developer sees, since whoever catches them answers with its own."""
_NOT_CAUGHT = (0, 5, 33)  # passed; no test was collected; no test calls it


class Work:
    """One area's folder, ready for this state of the code."""

    def __init__(self, folder: Path, area: Area, state: str) -> None:
        self.folder = folder
        mark = folder / "state"
        if not mark.exists() or mark.read_text() != state:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name in (*_SOURCES, "tests"):
                (folder / name).symlink_to(ROOT / name)
            (folder / "setup.cfg").write_text(_settings(area))
            (folder / "pytest.ini").write_text("[pytest]\n")  # or the project's, further up, would count
            mark.write_text(state)

    def mutants(self) -> list[str]:
        """The names of all there are, sorted."""
        return sorted(json.loads(self._tool("list", ())))

    def results(self) -> dict[str, bool]:
        """Whether it was caught, of each that was tried. One that ends by a signal or takes too long is caught."""
        found: dict[str, bool] = {}
        for meta in sorted(self.folder.glob("mutants/**/*.meta")):
            try:
                codes = json.loads(meta.read_text())["exit_code_by_key"]
            except json.JSONDecodeError:  # it is being written
                continue
            found |= {name: code not in _NOT_CAUGHT for name, code in codes.items() if code is not None}
        return found

    def differences(self, names: Sequence[str]) -> dict[str, str]:
        """What is wrong in each, as a unified diff of its function."""
        return json.loads(self._tool("differences", names)) if names else {}

    def run(self, names: Sequence[str], until: float, tell: Callable[[int], None]) -> None:
        """Try these, until that moment of the monotonic clock at most. Raises RuntimeError: the tests fail as it is."""
        with (self.folder / "run.log").open("w") as log:
            tool = subprocess.Popen(
                [sys.executable, _TOOL, "run"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                text=True,
            )
            try:
                assert tool.stdin is not None
                with tool.stdin:
                    tool.stdin.write("\n".join(names))
                while tool.poll() is None and time.monotonic() < until:
                    time.sleep(_LOOK_EVERY_S)
                    tell(len(self.results().keys() & set(names)))
            finally:
                if tool.poll() is None:
                    tool.terminate()
                    tool.wait(30)
        if tool.returncode > 0:
            raise RuntimeError(f"mutmut ended with {tool.returncode}: see {self.folder / 'run.log'}")

    def _tool(self, what: str, names: Sequence[str]) -> str:
        done = subprocess.run(
            [sys.executable, _TOOL, what],
            input="\n".join(names),
            capture_output=True,
            cwd=self.folder,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"mutmut could not {what}: {done.stderr[-2000:]}")
        return done.stdout


def _settings(area: Area) -> str:
    values = {
        "source_paths": _SOURCES,
        "only_mutate": area.changed,
        "also_copy": ("tests", "pytest.ini"),
        "do_not_mutate_patterns": _TEXTS,
        "pytest_add_cli_args": _PYTEST,
        "pytest_add_cli_args_test_selection": area.tests,
    }
    lists = "".join(f"{name}=\n" + "".join(f"    {value}\n" for value in of) for name, of in values.items())
    return f"[mutmut]\n{lists}use_git_change_detection=false\non_dependency_change=ignore\nuse_setproctitle=false\n"
