"""kafka-python, imported without its warnings, and without those of the sockets that it forgets.

It forgets a socket whose connection was given up before it was made. The garbage collector finds it in the midst of any test
of the same worker; a plain socket would warn then, and fail that test.
"""

from __future__ import annotations

import socket
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it reads its schemas in a way that Python 3.11 calls old
    from kafka.net.inet import KafkaNetSocket


class LeftToCollector(socket.socket):
    """A socket that nobody has to close."""

    def __del__(self) -> None:
        self.close()


def _made(_self: KafkaNetSocket, family: int, kind: int, protocol: int) -> socket.socket:
    return LeftToCollector(family, kind, protocol)


KafkaNetSocket.socket = _made
