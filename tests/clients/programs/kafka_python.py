"""kafka-python."""

from __future__ import annotations

import time
import warnings
from typing import Any

from tests.clients.programs.jobs import PAUSE_S, Deadline, Outcome, key_of, serve, value_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError
    from kafka.net.sasl.oauth import AbstractTokenProvider

Job = dict[str, Any]
BOOTSTRAP_MS = 8_000


class Tokens(AbstractTokenProvider):
    """The same token, whenever it is asked for."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def settings(job: Job) -> dict[str, Any]:
    """What every client of a job is made with."""
    config: dict[str, Any] = {
        "bootstrap_servers": job["bootstrap"].split(","),
        "security_protocol": job["protocol"],
        "bootstrap_timeout_ms": BOOTSTRAP_MS,
    }
    if job["mechanism"]:
        config |= {
            "sasl_mechanism": job["mechanism"],
            "sasl_plain_username": job["user"],
            "sasl_plain_password": job["password"],
        }
    if job["mechanism"] == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = Tokens(job["password"])
    if job["ca"]:
        config["ssl_cafile"] = job["ca"]
    if job["certificate"]:
        config |= {"ssl_certfile": job["certificate"], "ssl_keyfile": job["key"]}
    return config


def producer(job: Job) -> KafkaProducer:
    return KafkaProducer(acks="all", max_block_ms=int(job["limit_s"] * 1000), **settings(job))


def member(job: Job) -> KafkaConsumer:
    return KafkaConsumer(
        job["topic"],
        group_id=job["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings(job),
    )


def acknowledged(futures: list[Any], limit_s: float, outcome: Outcome) -> None:
    """Wait for all; what goes wrong becomes words, once each."""
    for future in futures:
        try:
            future.get(limit_s)
            outcome.sent += 1
        except KafkaError as error:
            if (said := f"{type(error).__name__}: {error}") not in outcome.words:
                outcome.words.append(said)


def exchange(job: Job) -> Outcome:
    outcome = Outcome()
    with producer(job) as sender:
        futures = [sender.send(job["topic"], value_of(n), key_of(n)) for n in range(job["records"])]
        acknowledged(futures, job["limit_s"], outcome)
    deadline = Deadline(job["limit_s"])
    values: list[bytes] = []
    with member(job) as reader:
        while len(values) < job["records"] and not deadline.is_over:
            for records in reader.poll(1000).values():
                values.extend(record.value for record in records)
        reader.commit()
    outcome.received, outcome.distinct = len(values), len(set(values))
    return outcome


def produce(job: Job) -> Outcome:
    outcome = Outcome()
    sender = producer(job)
    try:
        acknowledged([sender.send(job["topic"], value_of(0), key_of(0))], job["limit_s"], outcome)
    finally:
        sender.close(timeout=1)
    return outcome


def consume(job: Job) -> Outcome:
    outcome = Outcome()
    deadline = Deadline(job["limit_s"])
    reader = member(job)
    try:
        while not deadline.is_over:
            if reader.poll(1000):
                outcome.received = 1
                return outcome
    finally:
        reader.close(autocommit=False)
    outcome.words.append("nothing has been said")
    return outcome


def steady(job: Job) -> Outcome:
    outcome = Outcome()
    deadline, futures = Deadline(job["seconds"]), []
    with producer(job) as sender:
        while not deadline.is_over:
            futures.append(sender.send(job["topic"], value_of(len(futures)), key_of(len(futures))))
            time.sleep(PAUSE_S)
        acknowledged(futures, job["limit_s"], outcome)
    return outcome


if __name__ == "__main__":
    serve({"exchange": exchange, "produce": produce, "consume": consume, "steady": steady})
