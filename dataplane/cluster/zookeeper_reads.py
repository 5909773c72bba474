"""The reads of one turn of the loop go to ZooKeeper together.

A controller that takes over reads the state of every partition. kazoo sends each read by itself, with half a dozen system
calls on a thread that has to win the interpreter back from the loop after every one of them; in requests of READS_TOGETHER
they take a thirtieth of the CPU and of the time. So whoever begins many reads at once pays for few, and need not know it.

The request is ZooKeeper's multiRead (since 3.6), which kazoo does not have; its layout is that of a transaction. Every read
in it succeeds or fails alone. Reads that watch are not gathered: kazoo keeps watches by request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol.serialization import GetData, int_struct, multiheader_struct, read_buffer, stat_struct
from kazoo.protocol.states import ZnodeStat

from dataplane.doors import Loop
from dataplane.tasks import Future

READS_TOGETHER = 500
"""Far below the MiB that ZooKeeper takes in one request, also where names are long."""

Answer = tuple[bytes, ZnodeStat] | Exception
"""Of one read: what kazoo answers, or the error that it would have raised."""

_MULTI_READ, _NEITHER = 22, -1


class MultiRead:
    """As kazoo wants a request to be."""

    type = _MULTI_READ

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths

    def serialize(self) -> bytes:
        """The reads, each behind a header, and a header that ends them."""
        reads = (
            multiheader_struct.pack(GetData.type, False, -1) + GetData(path, None).serialize() for path in self.paths
        )
        return b"".join([*reads, multiheader_struct.pack(_NEITHER, True, -1)])

    @staticmethod
    def deserialize(answer: bytes, offset: int) -> list[Answer]:
        """In the order of the paths."""
        found: list[Answer] = []
        while True:
            kind, is_end, _ = multiheader_struct.unpack_from(answer, offset)
            offset += multiheader_struct.size
            if is_end:
                return found
            if kind == _NEITHER:
                found.append(EXCEPTIONS[int_struct.unpack_from(answer, offset)[0]]())
                offset += int_struct.size
            else:
                data, offset = read_buffer(answer, offset)
                found.append((data, ZnodeStat._make(stat_struct.unpack_from(answer, offset))))
                offset += stat_struct.size


class ReadsOfATurn:
    """Gathers them. `send` takes the paths of one request, and answers for each."""

    def __init__(self, loop: Loop, send: Callable[[Sequence[str]], Future[list[Answer]]]) -> None:
        self._loop = loop
        self._send = send
        self._waiting: list[tuple[str, Future[Answer]]] = []

    def read(self, path: str) -> Future[Answer]:
        """Sent in the next turn of the loop, or before the next call of another kind."""
        future: Future[Answer] = Future()
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append((path, future))
        return future

    def flush(self) -> None:
        """Send what waits: calls reach ZooKeeper in the order in which they were made."""
        waiting, self._waiting = self._waiting, []
        for begin in range(0, len(waiting), READS_TOGETHER):
            part = waiting[begin : begin + READS_TOGETHER]
            futures = [future for _, future in part]
            self._send([path for path, _ in part]).then(lambda sent, futures=futures: _tell(futures, sent))  # type: ignore[misc]


def _tell(futures: Sequence[Future[Answer]], sent: Future[list[Answer]]) -> None:
    if sent.error is not None:
        for future in futures:
            future.fail(sent.error)
        return
    for future, answer in zip(futures, sent.result(), strict=True):
        future.resolve(answer)
