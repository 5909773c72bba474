"""Small stand-ins for the stack's servers: each is a python process that sleeps, listens, fails or resists."""

import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from controlplane.stack.plan import accepts
from controlplane.stack.supervisor import Program

SLEEP = "import time\nwhile True: time.sleep(60)"
LISTEN = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True: listener.accept()[0].close()
"""
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n" + SLEEP
# Notes its child's pid in a file, as Celery's main process has a pool.
PARENT = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
path = pathlib.Path(sys.argv[1])
path.with_suffix(".part").write_text(str(child.pid))
path.with_suffix(".part").rename(path)
while True: time.sleep(60)
"""


def server(name: str, source: str, *arguments: object, answers: Callable[[], bool] = lambda: True, **rest) -> Program:
    return Program(name, command(source, *arguments), answers, **rest)


def listening(name: str, port: int, **rest) -> Program:
    return server(name, LISTEN, port, answers=lambda: accepts(port), **rest)


def step(name: str, source: str, *arguments: object, **rest) -> Program:
    return Program(name, command(source, *arguments), None, **rest)


def command(source: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", textwrap.dedent(source), *map(str, arguments))


def is_alive(pid: int) -> bool:
    """Running, and not merely a dead process that nobody has collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def eventually(condition: Callable[[], object], within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
