"""aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError
from aiokafka.helpers import create_ssl_context

from tests.clients.programs.jobs import PAUSE_S, Deadline, Outcome, key_of, serve, value_of

Job = dict[str, Any]


class Tokens(AbstractTokenProvider):
    """The same token, whenever it is asked for."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def settings(job: Job) -> dict[str, Any]:
    """What every client of a job is made with."""
    config: dict[str, Any] = {
        "bootstrap_servers": job["bootstrap"],
        "security_protocol": job["protocol"],
        "request_timeout_ms": 10_000,
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
        files = {"certfile": job["certificate"], "keyfile": job["key"]} if job["certificate"] else {}
        config["ssl_context"] = create_ssl_context(cafile=job["ca"], **files)
    return config


def producer(job: Job) -> AIOKafkaProducer:
    return AIOKafkaProducer(acks="all", enable_idempotence=True, **settings(job))


def member(job: Job) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        job["topic"], group_id=job["group"], auto_offset_reset="earliest", enable_auto_commit=False, **settings(job)
    )


async def acknowledged(futures: list[Any], limit_s: float, outcome: Outcome) -> None:
    """Wait for all; what goes wrong becomes words, once each."""
    for future in futures:
        try:
            await asyncio.wait_for(future, limit_s)
            outcome.sent += 1
        except (KafkaError, TimeoutError) as error:
            if (said := f"{type(error).__name__}: {error}") not in outcome.words:
                outcome.words.append(said)


async def exchange(job: Job) -> Outcome:
    outcome = Outcome()
    async with producer(job) as sender:
        futures = [await sender.send(job["topic"], value_of(n), key_of(n)) for n in range(job["records"])]
        await acknowledged(futures, job["limit_s"], outcome)
    deadline = Deadline(job["limit_s"])
    values: list[bytes] = []
    async with member(job) as reader:
        while len(values) < job["records"] and not deadline.is_over:
            for records in (await reader.getmany(timeout_ms=500)).values():
                values.extend(record.value for record in records)
        await reader.commit()
    outcome.received, outcome.distinct = len(values), len(set(values))
    return outcome


async def produce(job: Job) -> Outcome:
    outcome = Outcome()
    sender = producer(job)
    try:
        await asyncio.wait_for(sender.start(), job["limit_s"])
        sending = await asyncio.wait_for(sender.send(job["topic"], value_of(0), key_of(0)), job["limit_s"])
        await acknowledged([sending], job["limit_s"], outcome)
    finally:
        await sender.stop()
    return outcome


async def consume(job: Job) -> Outcome:
    outcome = Outcome()
    reader = member(job)
    try:
        await asyncio.wait_for(reader.start(), job["limit_s"])
        await asyncio.wait_for(reader.getone(), job["limit_s"])
        outcome.received = 1
    finally:
        await reader.stop()
    return outcome


async def steady(job: Job) -> Outcome:
    outcome = Outcome()
    deadline, futures = Deadline(job["seconds"]), []
    async with producer(job) as sender:
        while not deadline.is_over:
            futures.append(await sender.send(job["topic"], value_of(len(futures)), key_of(len(futures))))
            await asyncio.sleep(PAUSE_S)
        await acknowledged(futures, job["limit_s"], outcome)
    return outcome


def run(does: Callable[[Job], Awaitable[Outcome]]) -> Callable[[Job], Outcome]:
    return lambda job: asyncio.run(does(job))  # type: ignore[arg-type]


if __name__ == "__main__":
    serve({"exchange": run(exchange), "produce": run(produce), "consume": run(consume), "steady": run(steady)})
