"""librdkafka, by confluent-kafka."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from tests.clients.programs.jobs import PAUSE_S, Deadline, Outcome, key_of, serve, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Job = dict[str, Any]
TOKEN_S = 3_600.0
"""For how long librdkafka is told that a token is good."""


def words_of(error: KafkaError) -> str:
    """Its name, and the sentence, which may be the broker's."""
    return f"{error.name()}: {error.str()}"


def settings(job: Job, said: list[str]) -> dict[str, Any]:
    """What every client of a job is made with; errors that belong to no record go to `said`."""
    config: dict[str, Any] = {
        "bootstrap.servers": job["bootstrap"],
        "security.protocol": job["protocol"],
        "log_level": 0,
        "error_cb": lambda error: said.append(words_of(error)),
    }
    if job["mechanism"]:
        config |= {
            "sasl.mechanism": job["mechanism"],
            "sasl.username": job["user"],
            "sasl.password": job["password"],
        }
    if job["mechanism"] == "OAUTHBEARER":
        config["oauth_cb"] = lambda _config: (job["password"], time.time() + TOKEN_S)
    if job["ca"]:
        config["ssl.ca.location"] = job["ca"]
    if job["certificate"]:
        config |= {"ssl.certificate.location": job["certificate"], "ssl.key.location": job["key"]}
    return config


class Sender:
    """A producer that remembers what became of its records."""

    def __init__(self, job: Job) -> None:
        self.said: list[str] = []
        self.acknowledged = 0
        self.producer = Producer(settings(job, self.said) | {"acks": "all", "enable.idempotence": True})
        self._topic = job["topic"]

    def send(self, number: int) -> None:
        self.producer.produce(self._topic, value_of(number), key_of(number), on_delivery=self._delivered)
        self.producer.poll(0)

    def flush(self, limit_s: float) -> None:
        if left := self.producer.flush(limit_s):
            self.said.append(f"{left} records are neither acknowledged nor refused after {limit_s} s")
            self.producer.purge()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.said.append(words_of(error))


@contextlib.contextmanager
def member(job: Job, said: list[str]) -> Iterator[Consumer]:
    group = {"group.id": job["group"], "auto.offset.reset": "earliest", "enable.auto.commit": False}
    reader = Consumer(settings(job, said) | group)
    reader.subscribe([job["topic"]])
    try:
        yield reader
    finally:
        reader.close()


def exchange(job: Job) -> Outcome:
    sender = Sender(job)
    for number in range(job["records"]):
        sender.send(number)
    sender.flush(job["limit_s"])
    outcome = Outcome(sender.said, sent=sender.acknowledged)
    deadline = Deadline(job["limit_s"])
    values: list[bytes] = []
    with member(job, outcome.words) as reader:
        while len(values) < job["records"] and not deadline.is_over and not outcome.words:
            for message in reader.consume(job["records"], 0.2):
                if message.error() is not None:
                    raise KafkaException(message.error())
                values.append(message.value())
        reader.commit(asynchronous=False)
    outcome.received, outcome.distinct = len(values), len(set(values))
    return outcome


def produce(job: Job) -> Outcome:
    sender = Sender(job)
    sender.send(0)
    deadline = Deadline(job["limit_s"])
    while not sender.said and not sender.acknowledged and not deadline.is_over:
        sender.producer.poll(0.1)
    if not sender.acknowledged and not sender.said:
        sender.said.append("nothing has been said")
    sender.producer.purge()
    return Outcome(sender.said, sent=sender.acknowledged)


def consume(job: Job) -> Outcome:
    outcome = Outcome()
    deadline = Deadline(job["limit_s"])
    with member(job, outcome.words) as reader:
        while not deadline.is_over and not outcome.words:
            message = reader.poll(0.2)
            if message is not None and message.error() is None:
                outcome.received = 1
                return outcome
            if message is not None:
                outcome.words.append(words_of(message.error()))
    if not outcome.words:
        outcome.words.append("nothing has been said")
    return outcome


def steady(job: Job) -> Outcome:
    sender = Sender(job)
    deadline, number = Deadline(job["seconds"]), 0
    while not deadline.is_over:
        sender.send(number)
        number += 1
        time.sleep(PAUSE_S)
    sender.flush(job["limit_s"])
    return Outcome(sender.said, sent=sender.acknowledged)


if __name__ == "__main__":
    serve({"exchange": exchange, "produce": produce, "consume": consume, "steady": steady})
