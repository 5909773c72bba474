"""The supervisor: starts programs as soon as what they need answers, starts dead ones again, stops all in order.

Vocabulary: a *program* is a command with a name; a *step* is a program that runs once and must end with 0, as the
migrations do; a *server* is one that answers and stays. A program's *tier* says when it is stopped: highest tier first,
a whole tier at once, so that brokers still find ZooKeeper while they say goodbye.

One thread, one loop of short polls, no locks. Each child leads a process group of its own: a ctrl-C at the terminal
reaches only the supervisor, and a dead child's own children (Celery's pool) go with it. A child is signalled only
between its start and its reaping, so never by a pid that someone else has got since. Should the supervisor itself be
killed, the kernel (process.py) and the warden (warden.py) end what it started.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.stack import warden
from controlplane.stack.layout import PROJECT
from controlplane.stack.process import dies_with_parent

POLL_S = 0.05
FIRST_PAUSE_S = 0.3
LONGEST_PAUSE_S = 10.0
STEADY_AFTER_S = 30.0  # a child that lived so long begins its pauses anew
KEPT_LOG_BYTES = 16 * 1024 * 1024
TAIL_LINES = 12


@dataclass(frozen=True, slots=True)
class Program:
    """Something to run. `answers` is None for a step, else says whether the server is ready for callers."""

    name: str
    command: tuple[str, ...]
    answers: Callable[[], bool] | None
    needs: tuple[str, ...] = ()
    tier: int = 0
    patience_s: float = 60.0
    stop_patience_s: float = 10.0
    environment: tuple[tuple[str, str], ...] = ()  # beside that of all
    label: str = ""  # what the "is ready" line adds, for instance an address


class StartError(Exception):
    """The stack cannot start; the text is the sentence for the user."""


class StopRequested(Exception):  # noqa: N818 - not an error: the user wants it to end
    """ctrl-C or SIGTERM came before everything was up."""


@dataclass(slots=True)
class Child:
    """A program and its present process, if any."""

    program: Program
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    ready: bool = False
    start_again_at: float | None = None
    pause_s: float = FIRST_PAUSE_S

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self.process is not None
        return self.process.pid


@dataclass(slots=True)
class Supervisor:
    """Runs `programs` with `environment`, each with its log in `log_directory`; `say` gets one line per event."""

    programs: tuple[Program, ...]
    log_directory: Path
    environment: dict[str, str]
    say: Callable[[str], None]
    changed: Callable[[], None] = lambda: None  # called when a process was replaced by another
    lock_fd: int | None = None  # kept open by the warden
    _children: dict[str, Child] = field(init=False)
    _warden: subprocess.Popen[bytes] | None = field(init=False, default=None)
    _stop: bool = field(init=False, default=False)
    _hurry: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._children = {program.name: Child(program) for program in self.programs}

    def pids(self) -> dict[str, int]:
        """The processes that run now, by name."""
        return {name: child.pid for name, child in self._children.items() if child.process is not None}

    def request_stop(self) -> None:
        """End soon; asked a second time, end at once. Safe in a signal handler."""
        self._hurry = self._stop
        self._stop = True

    def start(self) -> None:
        """Return when every step is done and every server answers.

        Raises:
            StartError: a child ended or did not answer in time.
            StopRequested: `request_stop` was called meanwhile.
        """
        self.log_directory.mkdir(parents=True, exist_ok=True)
        while not all(child.ready for child in self._children.values()):
            if self._stop:
                raise StopRequested
            for child in self._children.values():
                self._advance(child)
            time.sleep(POLL_S)

    def watch(self) -> None:
        """Start dead servers again until `request_stop`."""
        while not self._stop:
            for child in self._children.values():
                self._revive(child)
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop what this supervisor started, highest tier first, and nothing else."""
        for tier in sorted({child.program.tier for child in self._children.values()}, reverse=True):
            self._stop_tier([child for child in self._running() if child.program.tier == tier])
        if self._warden is not None and self._warden.stdin is not None:
            self._warden.stdin.close()
            self._warden.wait()
            self._warden = None

    # --- starting -----------------------------------------------------------------------------------------------

    def _advance(self, child: Child) -> None:
        """One look at a child during the start."""
        program = child.program
        if child.process is None:
            if not child.ready and all(self._children[name].ready for name in program.needs):
                self._launch(child)
            return
        if ended(child.process):
            status = self._reap(child)
            if program.answers is not None or status != 0:
                raise StartError(self._obituary(program, status))
            child.ready = True
            self.say(f"{program.name} done")
        elif not child.ready and program.answers is not None and program.answers():
            child.ready = True
            self.say(f"{program.name} answers {program.label}".rstrip())
        elif not child.ready and time.monotonic() - child.started_at > program.patience_s:
            raise StartError(f"{program.name} did not answer within {program.patience_s:.0f} s.{self._tail(program)}")

    def _launch(self, child: Child) -> None:
        with self._log(child.program).open("ab") as log:
            child.process = subprocess.Popen(
                child.program.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment | dict(child.program.environment),
                cwd=PROJECT,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - one thread here, and it only calls prctl
            )
        child.started_at = time.monotonic()
        child.start_again_at = None
        self._tell_warden(f"+{child.pid}")

    def _log(self, program: Program) -> Path:
        path = self.log_directory / f"{program.name}.log"
        if path.exists() and path.stat().st_size > KEPT_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path

    # --- watching -----------------------------------------------------------------------------------------------

    def _revive(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is not None:
            if ended(child.process):
                self._plan_restart(child, now)
        elif child.start_again_at is not None and now >= child.start_again_at:
            self._launch(child)
            self.changed()

    def _plan_restart(self, child: Child, now: float) -> None:
        if now - child.started_at > STEADY_AFTER_S:
            child.pause_s = FIRST_PAUSE_S
        pid = child.pid
        status = self._reap(child)
        self.say(f"{child.program.name} (process {pid}) {epitaph(status)}: starting it again in {child.pause_s:.1f} s")
        child.start_again_at = now + child.pause_s
        child.pause_s = min(child.pause_s * 2, LONGEST_PAUSE_S)

    # --- stopping -----------------------------------------------------------------------------------------------

    def _running(self) -> list[Child]:
        return [child for child in self._children.values() if child.process is not None]

    def _stop_tier(self, children: list[Child]) -> None:
        for child in children:
            if not ended(child.process):
                os.kill(child.pid, signal.SIGTERM)
        asked_at = time.monotonic()
        killed: set[str] = set()
        while left := [child for child in children if child.process is not None]:
            for child in left:
                if ended(child.process):
                    self._reap(child)
                elif self._out_of_patience(child, asked_at) and child.program.name not in killed:
                    killed.add(child.program.name)
                    self.say(f"{child.program.name} does not stop: killing it")
                    os.kill(child.pid, signal.SIGKILL)
            time.sleep(POLL_S)

    def _out_of_patience(self, child: Child, asked_at: float) -> bool:
        return self._hurry or time.monotonic() - asked_at > child.program.stop_patience_s

    def _reap(self, child: Child) -> int:
        """Collect a process that has ended, and whatever it left behind in its group; its exit status."""
        assert child.process is not None
        # Before the wait the pid, and so the group's number, still belongs to the dead child.
        warden.send(child.pid, signal.SIGKILL)
        self._tell_warden(f"-{child.pid}")
        status = child.process.wait()
        child.process = None
        return status

    # --- the warden ---------------------------------------------------------------------------------------------

    def _tell_warden(self, line: str) -> None:
        lines = [line]
        if self._warden is None or self._warden.poll() is not None:
            self._warden = self._new_warden()
            lines = [f"+{pid}" for pid in self.pids().values()] + lines
        assert self._warden.stdin is not None
        self._warden.stdin.write("".join(each + "\n" for each in lines).encode())

    def _new_warden(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", warden.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            pass_fds=() if self.lock_fd is None else (self.lock_fd,),
        )
        assert process.stdin is not None
        return process

    # --- sentences ----------------------------------------------------------------------------------------------

    def _obituary(self, program: Program, status: int) -> str:
        return f"{program.name} {epitaph(status)} before it was ready.{self._tail(program)}"

    def _tail(self, program: Program) -> str:
        path = self.log_directory / f"{program.name}.log"
        lines = path.read_text(errors="replace").splitlines()[-TAIL_LINES:] if path.exists() else []
        shown = "".join(f"\n    {line}" for line in lines)
        return f" The end of {path}:{shown}" if shown else f" It wrote nothing to {path}."


def ended(process: subprocess.Popen[bytes] | None) -> bool:
    """Whether a child has ended, without reaping it: its pid stays its own until `wait`."""
    assert process is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def epitaph(status: int) -> str:
    """`was killed by SIGKILL` or `ended with status 1`."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
