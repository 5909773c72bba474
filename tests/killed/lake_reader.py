"""The process of `verifier`: one JVM that reads lakes for all of a campaign."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from controlplane.env import ROOT
from controlplane.stack.process import dies_with_parent

Ask = Callable[[dict[str, str]], Any]
_ENDS_WITHIN_S = 60.0


@contextmanager
def lake_reader(home: Path, log: Path) -> Iterator[Ask]:
    """A function that gives it an order and has its answer; AssertionError where it is gone. `home`: Spark's."""
    environment = {**os.environ, "SPARK_MASTER": "local[2]", "SLUICE_STACK_DIR": str(home)}
    with log.open("ab") as opened:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.killed.verifier"],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=opened, text=True,
            start_new_session=True,
            preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
        )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def answer() -> Any:
        line = stdout.readline()
        assert line, f"the lake's reader is gone; see {log}"
        return json.loads(line)

    def ask(order: dict[str, str]) -> Any:
        print(json.dumps(order), file=stdin, flush=True)
        return answer()

    try:
        answer()
        yield ask
    finally:
        with suppress(BrokenPipeError):
            stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_WITHIN_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_ENDS_WITHIN_S)
        stdout.close()
