"""Makes tests/golden/records/transactions.txt: a partition as Kafka 3.9.2 leaves it when transactions were written to it.

    python -m tests.conformance.golden_transactions write HOST:PORT       to a Kafka, which then has to be stopped in order
    python -m tests.conformance.golden_transactions keep DIRECTORY        of its partition t-0

Three producers write in transactions that overlap, and one writes outside of them; two transactions are aborted, two committed,
and one is open.
"""

from __future__ import annotations

import sys
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "records" / "transactions.txt"
TOPIC = "t"


def write(address: str) -> None:
    """By librdkafka, which is nobody's of the two."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    for made in AdminClient({"bootstrap.servers": address}).create_topics([NewTopic(TOPIC, 1, 1)]).values():
        made.result()
    a, b, c = (Producer({"bootstrap.servers": address, "transactional.id": name}) for name in "abc")
    for producer in (a, b, c):
        producer.init_transactions(30)
    plain = Producer({"bootstrap.servers": address, "enable.idempotence": True})

    def send(producer: Producer, value: str) -> None:
        producer.produce(TOPIC, value.encode())
        assert producer.flush(20) == 0

    a.begin_transaction()
    send(a, "a0")
    b.begin_transaction()
    send(b, "b0")
    send(plain, "x")
    send(b, "b1")
    b.abort_transaction(20)
    c.begin_transaction()
    send(c, "c0")
    send(a, "a1")
    a.commit_transaction(20)
    b.begin_transaction()
    send(b, "b2")
    b.commit_transaction(20)
    c.abort_transaction(20)
    a.begin_transaction()
    send(a, "a2")


def keep(directory: str) -> None:
    """The files that matter, as text."""
    kinds = (".log", ".txnindex", ".snapshot")
    found = sorted(path for path in Path(directory).iterdir() if path.suffix in kinds)
    GOLDEN.write_text("".join(f"{path.name} {path.read_bytes().hex()}\n" for path in found))


if __name__ == "__main__":
    {"write": write, "keep": keep}[sys.argv[1]](sys.argv[2])
