"""What the kernel alone costs on this machine at this moment: the baseline that the broker's figures are divided by.

A child process receives over loopback and appends to a file, 128 KiB at a time: no protocol, no checks. Its CPU per GB
says how fast the machine is today; the broker's ratio to it says how much the broker adds.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from pathlib import Path

CHUNK = 128 * 2**10


def cpu_s_per_gb(total: int = 10**9, directory: str | None = None) -> tuple[float, float]:
    """(CPU seconds per GB, MB/s) of receiving and writing `total` bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        pid = os.fork()
        if pid == 0:
            _sink(server, total, directory)
            os._exit(0)
        payload = bytes(CHUNK)
        began = time.monotonic()
        with socket.create_connection(server.getsockname()) as sock:
            for _ in range(total // CHUNK):
                sock.sendall(payload)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(1)
        seconds = time.monotonic() - began
        _, _, usage = os.wait4(pid, 0)
    return (usage.ru_utime + usage.ru_stime) / (total / 1e9), total / 1e6 / seconds


def _sink(server: socket.socket, total: int, directory: str | None) -> None:
    buffer = memoryview(bytearray(CHUNK))
    sock, _ = server.accept()
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        fd = os.open(file.name, os.O_WRONLY)
        done = 0
        while done < total:
            size = sock.recv_into(buffer)
            if not size:
                break
            done += os.write(fd, buffer[:size])
        os.close(fd)
    sock.close()
    Path(file.name).unlink(missing_ok=True)
