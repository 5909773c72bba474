"""From nothing to a running stack and back: what `manage.py up` does, told in order.

Lock the folder, look whether the ports are free, draw secrets, render configuration, start everything, write
stack.json, watch until ctrl-C, stop everything, remove stack.json. Whatever goes wrong before the stack is up ends in
one sentence, exit status 1, and nothing left running.

Running it again after any interruption is the repair: each step finds what is there and goes on.
"""

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from controlplane.java import JavaNotFoundError
from controlplane.stack import config, plan, ports, report
from controlplane.stack.layout import Layout
from controlplane.stack.redis import RedisNotFoundError
from controlplane.stack.supervisor import StartError, StopRequested, Supervisor

LOCK_PATIENCE_S = 15.0  # a warden needs up to 8 s to end what a killed supervisor left


def run(base: int, directory: Path | None = None, clusters: int = 1) -> int:
    """Run a stack of so many clusters until it is told to stop; the exit status."""
    os.umask(0o077)  # logs, data and database of a stack are their owner's alone
    try:
        layout = Layout.of(base, directory, clusters)
        with _locked(layout) as lock_fd:
            return _run_locked(layout, lock_fd)
    except (StartError, ValueError, JavaNotFoundError, RedisNotFoundError) as problem:
        print(f"sluice: {problem}", file=sys.stderr)
        return 1


def _run_locked(layout: Layout, lock_fd: int) -> int:
    began = time.monotonic()
    layout.stack_file.unlink(missing_ok=True)  # a supervisor that was killed could not
    stores = config.Stores.of(layout, os.environ)
    if problem := ports.problem(layout, stores.own):
        raise StartError(problem)
    config.give_secrets(layout, config.ensure_secrets(layout.secrets_file))
    config.ensure_encryption_keys(layout)
    config.give_certificates(layout)
    config.write_configuration(layout, stores)
    programs = plan.programs(layout, stores)
    environment = config.process_environment(layout, stores, os.environ)
    say = _Narrator(began)
    supervisor = Supervisor(programs, layout.log, environment, say, lock_fd=lock_fd)
    supervisor.changed = lambda: report.write_stack_file(layout, stores, supervisor.pids())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.request_stop())
    say(f"starting {', '.join(program.name for program in programs)}")
    if absence := environment["SLUICE_METERING_ABSENT"]:
        say(f"running without metering: {absence}")
    try:
        supervisor.start()
        supervisor.changed()
        say.plainly(report.welcome(layout, time.monotonic() - began))
        layout.welcomed_file.touch()
        supervisor.watch()
    except StopRequested:
        pass
    finally:
        layout.stack_file.unlink(missing_ok=True)
        say("stopping everything")
        supervisor.stop()
    say("stopped")
    return 0


class _Narrator:
    """Prints events with the seconds since the start; a terminal that is gone is no reason to stop."""

    def __init__(self, began: float) -> None:
        self._began = began

    def __call__(self, text: str) -> None:
        self.plainly(f"[{time.monotonic() - self._began:5.1f} s] {text}")

    def plainly(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(text, flush=True)


@contextlib.contextmanager
def _locked(layout: Layout) -> Iterator[int]:
    """Hold the folder's lock. The file says whose it is; the kernel frees it with the holder's last process."""
    layout.directory.mkdir(parents=True, exist_ok=True)
    lock_fd = os.open(layout.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _acquire(lock_fd, layout)
        os.ftruncate(lock_fd, 0)
        os.pwrite(lock_fd, str(os.getpid()).encode(), 0)
        yield lock_fd
    finally:
        os.close(lock_fd)


def _acquire(lock_fd: int, layout: Layout) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock_fd, 32, 0).decode()
            if _alive(holder) or time.monotonic() > deadline:
                raise StartError(
                    f"another `make up` (process {holder}) runs in {layout.directory}: stop it first, or choose a PORT."
                ) from None
            time.sleep(0.2)  # the holder was killed and its warden is still stopping what it started
        else:
            return


def _alive(pid: str) -> bool:
    """Whether the holder still runs; a dead process that nobody has collected does not."""
    try:
        return Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, ValueError):
        return False
