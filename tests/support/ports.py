"""Free ports for tests, all below 32768: a port above could be taken by any outgoing connection at any moment.

The number is drawn from the system's randomness, because pytest-randomly gives every worker the same seed. The workers
of pytest-xdist draw from slices of their own, so that one does not take what another has looked at and not yet bound.
The default stack's range (20000-21999) is left alone, so that tests run beside a `make up`.
"""

import os
import random
import socket

SINGLE = range(10_000, 20_000)
BLOCKS = range(22_000, 30_700)
STEP = 100

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
    mine = _slice_of_this_worker(SINGLE)
    while True:
        port = _system.choice(mine)
        if port not in _given and is_free(port):
            _given.add(port)
            return port


def free_block(size: int) -> int:
    """The first of `size` consecutive free ports: 100 for a stack without tenants, 2,000 for a whole one.

    A block given before comes again only when there is no other.
    """
    mine = _slice_of_this_worker(BLOCKS)
    bases = [base for base in mine[::STEP] if base + size <= mine.stop]
    _system.shuffle(bases)
    bases.sort(key=lambda base: not _given.isdisjoint(range(base, base + size)))
    for base in bases:
        block = range(base, base + size)
        if all(is_free(port) for port in block):
            _given.update(block)
            return base
    raise AssertionError(f"no {size} consecutive ports are free in {mine}")


def _slice_of_this_worker(ports: range) -> range:
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    width = len(ports) // count // STEP * STEP
    return ports[number * width : (number + 1) * width]
