"""librdkafka by ctypes: a producer that makes hundreds of MB/s of small records without Python in between.

The wheel of confluent-kafka brings the library. `rd_kafka_produce_batch` takes an array of messages that is filled once;
a call enqueues ten thousand of them. The structure and the constants are those of librdkafka's public header.
"""

from __future__ import annotations

import ctypes
import time
from importlib import util
from pathlib import Path

_PRODUCER = 0
_COPY = 0x2
_PARTITION_IN_MESSAGE = 0x8


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_ = [
        ("err", ctypes.c_int),
        ("rkt", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("_private", ctypes.c_void_p),
    ]


def _library() -> ctypes.CDLL:
    spec = util.find_spec("confluent_kafka")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parents[1] / "confluent_kafka.libs"
    for file in sorted(folder.glob("lib*")):
        if not file.name.startswith("librdkafka"):
            try:
                ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_topic_new.restype = ctypes.c_void_p
    return library


class BulkProducer:
    """Sends the same payload over and over to the partitions of a topic in turn."""

    def __init__(self, bootstrap: str, topic: str, settings: dict[str, str]) -> None:
        self._library = _library()
        conf = self._library.rd_kafka_conf_new()
        error = ctypes.create_string_buffer(512)
        for name, value in {"bootstrap.servers": bootstrap, **settings}.items():
            code = self._library.rd_kafka_conf_set(
                ctypes.c_void_p(conf), name.encode(), value.encode(), error, ctypes.c_size_t(512)
            )
            if code:
                raise ValueError(error.value.decode())
        self._handle = ctypes.c_void_p(
            self._library.rd_kafka_new(_PRODUCER, ctypes.c_void_p(conf), error, ctypes.c_size_t(512))
        )
        if not self._handle:
            raise ValueError(error.value.decode())
        self._topic = ctypes.c_void_p(self._library.rd_kafka_topic_new(self._handle, topic.encode(), None))

    def send(self, payload: bytes, count: int, partitions: int, *, run: int = 100) -> float:
        """Send `count` messages, runs of `run` to each partition in turn; seconds until the last was acknowledged."""
        chunk = 10_000
        buffer = ctypes.create_string_buffer(payload, len(payload))
        messages = (_Message * chunk)()
        address = ctypes.addressof(buffer)
        for index in range(chunk):
            messages[index].payload = address
            messages[index].len = len(payload)
            messages[index].partition = index // run % partitions
        began = time.monotonic()
        left = count
        while left:
            wanted = min(chunk, left)
            done = 0
            while done < wanted:
                rest = ctypes.byref(messages, done * ctypes.sizeof(_Message))
                done += self._library.rd_kafka_produce_batch(
                    self._topic, -1, _COPY | _PARTITION_IN_MESSAGE, rest, wanted - done
                )
                self._library.rd_kafka_poll(self._handle, 0 if done == wanted else 5)
            left -= wanted
        while self._library.rd_kafka_outq_len(self._handle):
            self._library.rd_kafka_poll(self._handle, 5)
            if time.monotonic() - began > 120:
                raise TimeoutError("messages are not acknowledged")
        return time.monotonic() - began

    def close(self) -> None:
        """Free the client."""
        self._library.rd_kafka_topic_destroy(self._topic)
        self._library.rd_kafka_destroy(self._handle)
