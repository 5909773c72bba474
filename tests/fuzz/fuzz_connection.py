"""A whole connection against a whole broker in this process, on virtual time: frames, halves of frames, pipelines.

An input is the kind of listener (a tenant's, or the internal one before authentication) and segments, each of them::

    control byte | length uint16 | payload

The control byte's low two bits: a frame around the payload; the payload as it is; a frame in two halves with a pause
between; a request whose API key and version are the payload's first two bytes and whose body is the rest. The others say
whether something is to happen before the next segment (else they are pipelined), and whether the correlation id repeats.

What must hold: no exception leaves a callback or is logged as an error, the loop comes to rest, connections that are gone
are forgotten, and after every `LOOK_AFTER` inputs an ordinary client of the tenant produces and fetches. The cluster is made
anew every `ANEW_AFTER` inputs; those that came before in the same one are kept with a failure (`history-*`).

    python tests/fuzz/fuzz_connection.py CORPUS… [libFuzzer's options]      run by tests.fuzz
"""

from __future__ import annotations

import logging
import sys
import zlib
from pathlib import Path
from random import Random

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(
    include=["dataplane.handlers", "dataplane.requests", "dataplane.network", "dataplane.groups", "dataplane.records"]
):
    from tests.fuzz.world import KEYS, World

from dataplane.protocol.codec import encode
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.fuzz import planted, seeds
from tests.fuzz.bounded import bounded
from tests.fuzz.segments import bent_input

ANEW_AFTER = 400
LOOK_AFTER = 25
HISTORY = Path("var/fuzz/connection")


class _Errors(logging.Handler):
    """What is logged as an error is one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(logging.Formatter().format(record))


errors = _Errors()
logging.getLogger().addHandler(errors)
logging.getLogger().setLevel(logging.ERROR)
worlds: list[World] = []


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    if len(data) < 4:
        return
    if not worlds or len(worlds[0].sent) >= ANEW_AFTER:
        worlds[:] = [World()]
    world = worlds[0]
    try:
        world.play(data)
        if len(world.sent) % LOOK_AFTER == 0:
            world.look()
        if errors.texts:
            raise AssertionError(errors.texts[0])
    except BaseException:
        keep_history()
        raise


def keep_history() -> None:
    """What was sent to the same cluster before."""
    HISTORY.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(worlds[0].sent):
        (HISTORY / f"history-{number:04}").write_bytes(each)


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Another input: segments bent by what they are, and now and then bytes altered blindly."""
    random = Random(seed)
    if random.random() < 0.2:
        return atheris.Mutate(data, max_size)
    for _ in range(random.choice((1, 1, 2, 3))):
        data = bent_input(data, KEYS, random, atheris.Mutate)
    return data[:max_size]


def write_seeds(folder: Path) -> None:
    """The first corpus: every golden request alone, and in pairs behind each other."""
    made = []
    for key, version, body in seeds.requests():
        if key in KEYS:
            payload = bytes((KEYS.index(key), version)) + body
            made.append(bytes((7,)) + len(payload).to_bytes(2) + payload)
    for number, records in enumerate((*seeds.batches(), *seeds.message_sets())):
        for version in (0, 2, 3, 9):
            data = TopicProduceData(("orders", "strict")[version & 1], (PartitionProduceData(0, records),))
            request = ProduceRequest(acks=(-1, 0, 1)[number % 3], timeout_ms=100, topic_data=(data,))
            payload = bytes((KEYS.index(0), version)) + encode(request, version)
            made.append(bytes((7,)) + len(payload).to_bytes(2) + payload)
    for version in (0, 2, 4, 11, 12):
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=10,
            min_bytes=1,
            max_bytes=5000,
            topics=(FetchTopic(topic="orders", partitions=(wanted,)),),
        )
        payload = bytes((KEYS.index(1), version)) + encode(request, version)
        made.append(bytes((7,)) + len(payload).to_bytes(2) + payload)
    for number, segment in enumerate(made):
        following = made[(number * 7 + 3) % len(made)]
        for data in (b"\0" + segment, b"\0" + bytes((segment[0] & ~4,)) + segment[1:] + following, b"\1" + segment):
            (folder / f"{zlib.crc32(data):08x}").write_bytes(data)


if __name__ == "__main__":
    planted.take(sys.argv)
    atheris.Setup(sys.argv, bounded(one_input, keep_history), custom_mutator=mutate)
    atheris.Fuzz()
