"""Makes tests/golden/records/: what Kafka 3.9.2 makes of batches and message sets of all formats.

    python -m tests.conformance.golden_records        (from the project's root; needs `mvn` and Java 17)

Questions are made here with a fixed seed by our own codecs, so Kafka also reads what we write; `java_records/` answers
(see there for the words). One file per kind of question; in it pairs of lines, question and answer.
"""

import random
from pathlib import Path

from crc32c import crc32c

from dataplane.records.batch import Record, build_batch
from dataplane.records.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from dataplane.records.control import Marker, build_marker
from dataplane.records.header import CHECKED_FROM, CRC_AT, LOG_APPEND_TIME
from dataplane.records.legacy import Message, write_message_set
from tests.conformance.golden_protocol import ask_kafka

ORACLE = Path(__file__).parent / "java_records"
GOLDEN = Path(__file__).parents[1] / "golden" / "records"
NOW = 1_700_000_000_000
OLD_CODECS = (NONE, GZIP, SNAPPY, LZ4)
FOREVER = 2**63 - 1


def random_records(rng, count, *, keyless=True):
    def text(chance):
        return None if rng.random() < chance else rng.choice((b"", b"a", b"v" * 100, rng.randbytes(rng.randrange(300))))

    headers = ((), (), (("trace", b"1"), ("empty", None)))
    return [
        Record(text(0.3 if keyless else 0), text(0.2), rng.choice(headers), NOW + rng.randrange(-5000, 5000))
        for _ in range(count)
    ]


def stamped(batch):
    """As a leader with log append time stores it."""
    batch = bytearray(batch)
    batch[22] |= LOG_APPEND_TIME
    batch[35:43] = (NOW + 77_777).to_bytes(8)
    batch[CRC_AT:CHECKED_FROM] = crc32c(memoryview(batch)[CHECKED_FROM:]).to_bytes(4)
    return batch


def down_questions(rng):
    for codec in OLD_CODECS:
        for magic in (0, 1):
            for number in range(4):
                base, log = 100, b""
                for _ in range(rng.randrange(1, 4)):
                    batch = build_batch(
                        random_records(rng, rng.randrange(1, 8)),
                        now_ms=NOW,
                        base_offset=base,
                        codec=codec,
                        leader_epoch=3,
                        **({"producer_id": 5, "producer_epoch": 0, "base_sequence": 0} if number == 1 else {}),
                    )
                    log += bytes(stamped(batch) if number == 2 else batch)
                    base += int.from_bytes(batch[23:27]) + 1
                    if number == 3:
                        marker = build_marker(
                            Marker.COMMIT, producer_id=5, producer_epoch=0, coordinator_epoch=1, now_ms=NOW
                        )
                        marker[:8] = base.to_bytes(8)
                        log += bytes(marker)
                        base += 1
                yield f"down {magic} {rng.choice((100, 101, 102))} {log.hex()}"
    yield f"down 1 0 {build_batch(random_records(rng, 2), now_ms=NOW, codec=ZSTD).hex()}"


def message_sets(rng):
    for magic in (0, 1):
        for codec in OLD_CODECS:
            rows = [
                Message(offset, magic, 0, record.timestamp if magic else -1, record.key, record.value)
                for offset, record in enumerate(random_records(rng, rng.randrange(1, 9)))
            ]
            if magic and codec == GZIP:
                rows[0] = rows[0]._replace(timestamp=-1)
            yield write_message_set(rows, codec)


def read_questions(rng):
    for _ in range(3):
        for message_set in message_sets(rng):
            yield f"read {message_set.hex()}"
    for codec in NAMES:
        yield f"read {build_batch(random_records(rng, 20), now_ms=NOW, codec=codec).hex()}"
    for codec in (SNAPPY, LZ4):  # more than one block
        yield f"read {build_batch([Record(None, bytes(70_000), (), NOW)], now_ms=NOW, codec=codec).hex()}"


def write_questions(rng):
    for magic in (0, 1):
        for codec in OLD_CODECS:
            for append_time in (-1, NOW + 5)[: 1 + magic]:
                words = []
                for record in random_records(rng, 5):
                    key, value = ("-" if x is None else "x" + x.hex() for x in (record.key, record.value))
                    words.append(f"{record.timestamp if magic else -1} {key} {value} -")
                yield f"write {magic} {NAMES[codec]} 1000 {append_time} {' '.join(words)}"


def append_questions(rng):
    limits = f"{FOREVER} {FOREVER} false"
    for target in ("producer", "none", "gzip", "zstd"):
        for kind in ("CREATE", "LOG_APPEND"):
            for message_set in message_sets(rng):
                yield f"append {target} {kind} {NOW} {limits} {message_set.hex()}"
            for codec in NAMES:
                batch = build_batch(random_records(rng, 6), now_ms=NOW, codec=codec)
                yield f"append {target} {kind} {NOW} {limits} {batch.hex()}"
    old, new = (Record(b"k", b"v", (), NOW + by) for by in (-10_001, 10_001))
    fine = [Record(b"k", b"v", (), NOW + by) for by in (-10_000, 10_000)]
    for rows in (fine, [*fine, old], [new, *fine, old]):
        batch = build_batch(rows, now_ms=NOW).hex()
        yield f"append producer CREATE {NOW} 10000 10000 false {batch}"
        yield f"append producer LOG_APPEND {NOW} 10000 10000 false {batch}"
        messages = [Message(n, 1, 0, row.timestamp, row.key, row.value) for n, row in enumerate(rows)]
        yield f"append producer CREATE {NOW} 10000 10000 false {write_message_set(messages).hex()}"
    keyless = [Record(b"k", b"v", (), NOW), Record(None, b"v", (), NOW)]
    yield f"append producer CREATE {NOW} {FOREVER} {FOREVER} true {build_batch(keyless, now_ms=NOW).hex()}"
    yield from _bad_questions(limits)


def _bad_questions(limits):
    one = Message(0, 1, 0, NOW, b"k", b"v")
    single, wrapped = write_message_set([one]), write_message_set([one], GZIP)
    stamp = write_message_set([one._replace(attributes=8)])
    mixed = write_message_set([Message(0, 1, GZIP, NOW, None, None)])
    for bad in (wrapped + wrapped, single + wrapped, wrapped + single, stamp, mixed):
        yield f"append producer CREATE {NOW} {limits} {bad.hex()}"


FILES = {
    "down": down_questions,
    "read": read_questions,
    "write": write_questions,
    "append": append_questions,
}


def main():
    GOLDEN.mkdir(parents=True, exist_ok=True)
    asked = {name: list(make(random.Random(name))) for name, make in FILES.items()}
    questions = [line for lines in asked.values() for line in lines]
    answers = iter(ask_kafka(questions, ORACLE, "RecordsOracle"))
    for name, lines in asked.items():
        (GOLDEN / f"{name}.txt").write_text("".join(f"{line}\n{next(answers)}\n" for line in lines))


if __name__ == "__main__":
    main()
