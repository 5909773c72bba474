"""The tenant that reads old data: processes of its own, several connections, as fast as they are answered or at a rate.

`whole` goes through every partition from the beginning, a MiB at a time; `scattered` asks for 64 KiB from anywhere, so
that nearly each fetch has to look up an offset in an index that nobody has looked at.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from tests.benchmarks.consume import RawConsumer

WHOLE_BYTES, SCATTERED_BYTES = 2**20, 64 * 2**10

Address = tuple[str, int]
Ends = list[int]
"""The end offset of each partition."""
Reading = Callable[[Address, str, Ends, float | None, float | None], float]
"""Bytes a second (at most, or as fast as it goes) for some seconds (or until all is read); how many it were."""


def whole(address: Address, topic: str, ends: Ends, rate: float | None, seconds: float | None) -> float:
    """Read each partition to its end, or until the time is over, again from the beginning where it is; bytes a second.

    All of them together read at most `rate` bytes a second.
    """

    def read(consumer: RawConsumer, end: int, is_over: Callable[[], bool]) -> int:
        began, got = time.monotonic(), 0
        while not is_over():
            if consumer.offset >= end:
                if seconds is None:
                    break
                consumer.offset = 0
            got += consumer.fetch(WHOLE_BYTES)
            if rate is not None:
                time.sleep(max(0.0, began + got * len(ends) / rate - time.monotonic()))
        return got

    return _together(address, topic, ends, seconds, read)


def scattered(address: Address, topic: str, ends: Ends, rate: float | None, seconds: float | None) -> float:
    """Read from anywhere until the time is over; bytes a second."""
    del rate
    dice = random.Random(7)

    def read(consumer: RawConsumer, end: int, is_over: Callable[[], bool]) -> int:
        got = 0
        while not is_over():
            consumer.offset = dice.randrange(end)
            got += consumer.fetch(SCATTERED_BYTES)
        return got

    return _together(address, topic, ends, seconds, read)


def _together(
    address: Address,
    topic: str,
    ends: Ends,
    seconds: float | None,
    read: Callable[[RawConsumer, int, Callable[[], bool]], int],
) -> float:
    began = time.monotonic()
    got: list[int] = []

    def one(partition: int, end: int) -> None:
        consumer = RawConsumer(address, topic, partition)
        got.append(read(consumer, end, lambda: seconds is not None and time.monotonic() - began > seconds))
        consumer.close()

    threads = [threading.Thread(target=one, args=entry) for entry in enumerate(ends)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(ends), "a connection of the reader broke"
    return sum(got) / (time.monotonic() - began)
