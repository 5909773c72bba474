"""Free ports for tests, all below 32768: a port above could be taken by any outgoing connection at any moment.

The number is drawn from the system's randomness, because pytest-randomly gives every worker the same seed. The default
stack's range (20000-21999) is left alone, so that tests run beside a `make up`.
"""

import random
import socket

SINGLE = range(10_000, 20_000)
BLOCKS = range(22_000, 32_000, 100)

_system = random.SystemRandom()
_given: set[int] = set()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port nobody listens on, never given twice by this process."""
    while True:
        port = _system.choice(SINGLE)
        if port not in _given and is_free(port):
            _given.add(port)
            return port


def free_block(size: int) -> int:
    """The first of `size` consecutive free ports: the base of a whole stack."""
    while True:
        base = _system.choice(BLOCKS)
        if base + size <= 32_768 and all(is_free(port) for port in range(base, base + size)):
            return base
