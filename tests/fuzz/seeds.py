"""What the fuzzers begin with: golden bytes of Kafka, and batches and message sets of every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.api import APIS
from dataplane.protocol.schema import message_info
from dataplane.records.batch import Record, build_batch
from dataplane.records.compression import NAMES
from dataplane.records.legacy import Message, write_message_set
from tests.dataplane.protocol.strategies import all_messages
from tests.dataplane.protocol.test_same_bytes_as_kafka import read_golden

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 400
RECORDS = [Record(b"key", b"value", (("h", b"1"), ("n", None)), 1_700_000_000_000), Record(None, None, (), 5)]


def golden() -> Iterator[tuple[type, int, bytes]]:
    """(message class, version, bytes), the small ones."""
    for cls in dict.fromkeys(cls for cls, _ in all_messages()):
        try:
            examples = list(read_golden(cls.__name__))
        except FileNotFoundError:
            continue
        for version, _, data in examples:
            if len(data) <= _LONGEST:
                yield cls, version, data


def requests() -> Iterator[tuple[int, int, bytes]]:
    """(API key, version, body)."""
    keys = {api.request: int(api.key) for api in APIS.values()}
    for cls, version, data in golden():
        if cls in keys and message_info(cls).api_key is not None:
            yield keys[cls], version, data


def batches() -> Iterator[bytes]:
    """Magic 2."""
    for codec in NAMES:
        yield bytes(build_batch(RECORDS, now_ms=1, codec=codec))
    yield bytes(build_batch(RECORDS, now_ms=1, producer_id=7, producer_epoch=0, base_sequence=0))


def message_sets() -> Iterator[bytes]:
    """Formats 0 and 1."""
    for magic in (0, 1):
        rows = [Message(n, magic, 0, r.timestamp if magic else -1, r.key, r.value) for n, r in enumerate(RECORDS)]
        for codec in (0, 1, 2, 3):
            yield write_message_set(rows, codec)
