"""Long work on records, cut into pieces that fit between two turns of a loop. Pure: who runs the pieces is elsewhere.

Such work is a generator. What it yields is a pause (None: go on in another turn) or a call that releases the GIL for its
whole length, codecs above all, to be made wherever the runner likes; the value of the call is sent back in, its error
thrown in. What the generator returns is the result. `run_through` is the runner for tests and for callers that have time;
`dataplane.slices` has the one that shares a broker's loop.

Handlers of long requests are such generators too. They pause after every 50 to 100 microseconds of work, counted in
elements, since pure code has no clock: the runner knows how many such steps are a slice. Python code costs one to
five microseconds a record, which makes `RECORDS_PER_STEP`; of its elements each handler knows how many.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from dataplane.records.compression import Buffer
from dataplane.records.header import CorruptBatchError

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K")
Steps = Generator[Callable[[], Any] | None, Any, T]

RECORDS_PER_STEP = 64
_INLINE_PACKED = 16 * 2**10
_INLINE_UNPACKED = 128 * 2**10
"""What a codec does within about a millisecond, gzip apart, which takes two."""
_INLINE_TO_PACK = 32 * 2**10


def run_through(steps: Steps[T]) -> T:
    """The result, here and now."""
    try:
        work = next(steps)
        while True:
            try:
                answer = None if work is None else work()
            except Exception as error:  # noqa: BLE001 - the generator decides
                work = steps.throw(error)
            else:
                work = steps.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def resumed(steps: Steps[T], work: Callable[[], Any] | None) -> Steps[T]:
    """Steps whose first pause has come: `work` is what they yielded."""
    try:
        while True:
            try:
                answer = yield work
            except Exception as error:  # noqa: BLE001 - the generator decides
                work = steps.throw(error)
            else:
                work = steps.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        steps.close()


STEP_US = 80


class Pace:
    """Says when a pause is due, to code that knows what its elements cost: `if pace.over(12): yield None`.

    A pure function cannot look at a clock, and one that could would not want to at every element.
    """

    __slots__ = ("_left_us",)

    def __init__(self) -> None:
        self._left_us = STEP_US

    def over(self, cost_us: int) -> bool:
        """Whether this much work more makes a step full. It is measured on the slow side: a pause costs little."""
        self._left_us -= cost_us
        if self._left_us > 0:
            return False
        self._left_us = STEP_US
        return True


def each(items: Iterable[A], make: Callable[[A], B], cost_us: int, pace: Pace | None = None) -> Steps[list[B]]:
    """What `make` says of every item, with pauses. One that raises ends it."""
    pace = pace or Pace()
    made: list[B] = []
    for item in items:
        if pace.over(cost_us):
            yield None
        made.append(make(item))
    return made


def grouped(
    groups: Iterable[tuple[K, Iterable[A]]],
    make: Callable[[K, tuple[A, ...]], B],
    cost_us: int,
    pace: Pace | None = None,
) -> Steps[tuple[B, ...]]:
    """What `make` says of every group (a topic) and its rows (of partitions), with pauses."""
    return tuple((yield from each(groups, lambda group: make(group[0], tuple(group[1])), cost_us, pace)))


def taken_out(groups: dict[K, list[A]]) -> Iterator[tuple[K, list[A]]]:
    """The items of a dictionary, for `grouped`; their lists go with them, and not all at once with the dictionary."""
    for key, rows in groups.items():
        groups[key] = _NO_ROWS
        yield key, rows


_NO_ROWS: list[Any] = []


def unpacked(codec: int, data: Buffer, limit: int) -> Steps[Buffer]:
    """Decompress. Raises CorruptBatchError: INVALID_RECORD when there is more than `limit`, else CORRUPT_MESSAGE."""
    if codec == compression.NONE:
        return data
    try:
        if len(data) <= _INLINE_PACKED:
            try:
                return compression.decompress(codec, data, min(limit, _INLINE_UNPACKED))
            except compression.TooLargeError:
                if limit <= _INLINE_UNPACKED:
                    raise
        return (yield lambda: compression.decompress(codec, data, limit))  # type: ignore[no-any-return]
    except compression.TooLargeError as error:
        raise CorruptBatchError(str(error), ErrorCode.INVALID_RECORD) from error
    except compression.CompressionError as error:
        raise CorruptBatchError(str(error)) from error


def packed(pack: Callable[[Buffer], bytes], data: Buffer) -> Steps[bytes]:
    """Compress with `pack`."""
    if len(data) <= _INLINE_TO_PACK:
        return pack(data)
    return (yield lambda: pack(data))  # type: ignore[no-any-return]
