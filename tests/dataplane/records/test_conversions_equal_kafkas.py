"""Up- and down-conversion, message sets and what a leader changes, against golden answers of Kafka 3.9.2.

Not compressed: byte for byte. Compressed: the same records, since codecs' outputs differ between implementations; and
Kafka has read what ours wrote (`read.txt`). The files are made by tests/conformance/golden_records.py.
"""

from pathlib import Path

import pytest

# What is refused is compared like what is answered.
# ruff: noqa: PT017
from dataplane.records.batch import read_header, read_records
from dataplane.records.compression import NAMES
from dataplane.records.down_conversion import Converted, down_convert
from dataplane.records.header import CorruptBatchError, check_batch
from dataplane.records.legacy import read_message_set, read_shallow
from dataplane.records.preparation import RefusedRecordsError, Rules, prepare_batch, prepare_messages
from dataplane.records.steps import run_through

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
CODECS = {name: codec for codec, name in NAMES.items()}
ROOMY = 2**31


def golden(name):
    lines = (GOLDEN / f"{name}.txt").read_text().splitlines()
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    return pytest.mark.parametrize(("question", "answer"), pairs, ids=[str(number) for number in range(len(pairs))])


def rows_of(data):
    """(offset, timestamp, key, value) of a batch, or of a message set."""
    if data[16] == 2:
        return [(r.offset, r.timestamp, r.key, r.value) for r in read_records(data)]
    return [
        (m.offset, m.timestamp, *(None if x is None else bytes(x) for x in (m.key, m.value)))
        for m in read_message_set(data)
    ]


def in_words(data):
    def word(value):
        return "-" if value is None else "x" + value.hex()

    return ",".join(f"{offset} {time} {word(key)} {word(value)}" for offset, time, key, value in rows_of(data))


@golden("read")
def test_kafka_reads_what_we_write_as_we_do(question, answer):
    assert in_words(bytes.fromhex(question.split()[1])) == answer


@golden("write")
def test_we_read_what_kafka_writes(question, answer):
    _, _, codec, base, append_time, *words = question.split()
    data = bytes.fromhex(answer)
    expected = []
    for number in range(len(words) // 4):
        time, key, value, _ = words[4 * number : 4 * number + 4]
        time = append_time if append_time != "-1" else time
        expected.append(f"{int(base) + number} {time} {key} {value}")
    assert in_words(data) == ",".join(expected)
    assert data[17] & 7 == CODECS[codec]


def shape(data):
    """All of a message set that a codec does not change: heads of messages, and what is in wrappers."""
    return [(m.offset, m.magic, m.attributes, m.timestamp, m.key) for m in read_shallow(data)]


@golden("down")
def test_down_conversion(question, answer):
    _, magic, first, log = question.split()
    converted = Converted(int(first), ROOMY, at_least_one=True)
    try:
        run_through(down_convert(memoryview(bytes.fromhex(log)), int(magic), converted))
    except CorruptBatchError as error:
        assert f"error {error.code.name}" == answer
        return
    expected = bytes.fromhex(answer)
    if bytes.fromhex(log)[22] & 7 == 0:
        assert converted.data.hex() == answer
    else:
        assert shape(converted.data) == shape(expected)
        assert rows_of(converted.data) == rows_of(expected)


def placed(batch):
    """As the log puts it at offset 0, in leader epoch 0."""
    out = bytearray(batch)
    out[:8], out[12:16] = bytes(8), bytes(4)
    return out


@golden("append")
def test_what_a_leader_stores(question, answer):
    _, codec, kind, now, before, after, compacted, data = question.split()
    rules = Rules(
        None if codec == "producer" else CODECS[codec],
        kind == "LOG_APPEND",
        int(before),
        int(after),
        compacted == "true",
        full=True,
    )
    batch = memoryview(bytearray.fromhex(data))
    try:
        if batch[16] == 2:
            assert check_batch(batch, read_header(batch), ROOMY) == 0
            made = run_through(prepare_batch(batch, read_header(batch), rules, int(now)))
        else:
            made = run_through(prepare_messages(batch, rules, int(now), ROOMY))
    except RefusedRecordsError as error:
        if batch[16] == 2:
            assert f"error {error.code.name} {' '.join(str(index) for index, _ in error.rows)}" == answer
        else:  # every message is a batch of its own to Kafka, and its index 0; old answers have no room for it
            assert error.code.name == answer.split()[1]
        return
    except CorruptBatchError as error:
        # Where Kafka names a record it does so for one that is refused for what it is, not for when.
        assert f"error {error.code.name}" == answer.removesuffix(" 0")
        return
    made, expected = placed(made), bytes.fromhex(answer)
    ours, theirs = read_header(made), read_header(expected)
    assert check_batch(memoryview(made), ours._replace(attributes=ours.attributes & ~8), ROOMY) == 0
    assert rows_of(made) == rows_of(expected)
    assert [r.headers for r in read_records(made)] == [r.headers for r in read_records(expected)]
    # Rebuilt and stamped, Kafka's records have the new time themselves; ours keep the producer's, as stamped in place.
    moved = kind == "LOG_APPEND" and ours.base_timestamp != theirs.base_timestamp
    same = ours._replace(
        crc=theirs.crc,
        batch_length=theirs.batch_length,
        **({"base_timestamp": theirs.base_timestamp} if moved else {}),
    )
    assert same == theirs
    if not ours.compression and not moved:
        assert made.hex() == answer
