"""Clients that are Python throughout. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from controlplane.snippets.programs.way import AUTHORITY, BEARER, CERTIFICATE, GROUP, KEY, PASSWORD, TOKEN, USER

if TYPE_CHECKING:
    from controlplane.snippets.programs.way import Way

_KAFKA_PYTHON = """\
# pip install kafka-python
from kafka import KafkaProducer
{tokens}
producer = KafkaProducer({arguments})
producer.send("{topic}", b"hello").get(timeout=60)  # raises what went wrong
producer.flush()
"""

_KAFKA_PYTHON_CONSUMER = """\
# pip install kafka-python
from kafka import KafkaConsumer
{tokens}
consumer = KafkaConsumer({arguments})
for record in consumer:
    print(record.value, flush=True)
"""

_KAFKA_PYTHON_TOKENS = """\
from kafka.net.sasl.oauth import AbstractTokenProvider


class Tokens(AbstractTokenProvider):
    def token(self):
        return "{token}"

"""

_AIOKAFKA = """\
# pip install aiokafka
import asyncio

from aiokafka import AIOKafkaProducer
{imports}{tokens}

async def main():
    producer = AIOKafkaProducer({arguments})
    await producer.start()
    try:
        await producer.send_and_wait("{topic}", b"hello")
    finally:
        await producer.stop()


asyncio.run(main())
"""

_AIOKAFKA_CONSUMER = """\
# pip install aiokafka
import asyncio

from aiokafka import AIOKafkaConsumer
{imports}{tokens}

async def main():
    consumer = AIOKafkaConsumer({arguments})
    await consumer.start()
    try:
        async for record in consumer:
            print(record.value, flush=True)
    finally:
        await consumer.stop()


asyncio.run(main())
"""

_AIOKAFKA_TOKENS = """

class Tokens(AbstractTokenProvider):
    async def token(self):
        return "{token}"
"""


def kafka_python(way: Way) -> str:
    """A producer."""
    return _KAFKA_PYTHON.format(arguments=_arguments(_of_kafka_python(way)), topic=way.topic, tokens=_tokens(way))


def kafka_python_consumer(way: Way) -> str:
    """A member of a group, which goes on reading."""
    found = {**_of_kafka_python(way), "group_id": json.dumps(GROUP), "auto_offset_reset": json.dumps("earliest")}
    arguments = f"\n    {json.dumps(way.topic)},{_arguments(found)}"
    return _KAFKA_PYTHON_CONSUMER.format(arguments=arguments, tokens=_tokens(way))


def _of_kafka_python(way: Way) -> dict[str, str]:
    """How it comes in."""
    found = {"bootstrap_servers": json.dumps(way.bootstrap), **_login(way)}
    if way.shows:
        found |= {"ssl_certfile": json.dumps(CERTIFICATE), "ssl_keyfile": json.dumps(KEY)}
    if way.is_tls:
        found |= {"ssl_cafile": json.dumps(AUTHORITY)}
    return found


def _tokens(way: Way) -> str:
    return _KAFKA_PYTHON_TOKENS.format(token=TOKEN) if way.mechanism == BEARER else ""


def aiokafka(way: Way) -> str:
    """A producer."""
    found, imports = _of_aiokafka(way)
    return _AIOKAFKA.format(
        arguments=_arguments(found, indent=8),
        topic=way.topic,
        imports=imports,
        tokens=_AIOKAFKA_TOKENS.format(token=TOKEN) if way.mechanism == BEARER else "",
    )


def aiokafka_consumer(way: Way) -> str:
    """A member of a group, which goes on reading."""
    found, imports = _of_aiokafka(way)
    found |= {"group_id": json.dumps(GROUP), "auto_offset_reset": json.dumps("earliest")}
    return _AIOKAFKA_CONSUMER.format(
        arguments=f"\n        {json.dumps(way.topic)},{_arguments(found, indent=8)}",
        imports=imports,
        tokens=_AIOKAFKA_TOKENS.format(token=TOKEN) if way.mechanism == BEARER else "",
    )


def _of_aiokafka(way: Way) -> tuple[dict[str, str], str]:
    """How it comes in, and the lines that import what this needs."""
    found, imports = {"bootstrap_servers": json.dumps(way.bootstrap), **_login(way)}, []
    if way.mechanism == BEARER:
        imports.append("from aiokafka.abc import AbstractTokenProvider")
    if way.is_tls:
        imports.append("from aiokafka.helpers import create_ssl_context")
        files = {"cafile": AUTHORITY} | ({"certfile": CERTIFICATE, "keyfile": KEY} if way.shows else {})
        context = ", ".join(f"{name}={json.dumps(path)}" for name, path in files.items())
        found |= {"ssl_context": f"create_ssl_context({context})"}
    return found, "".join(f"{line}\n" for line in imports)


def _login(way: Way) -> dict[str, str]:
    """What both clients call by the same names; values as they stand in a program."""
    if way.security == "plaintext":
        return {}
    found = {"security_protocol": json.dumps(way.security.upper())}
    if way.mechanism:
        found |= {"sasl_mechanism": json.dumps(way.mechanism)}
    if way.has_password:
        found |= {"sasl_plain_username": json.dumps(USER), "sasl_plain_password": json.dumps(PASSWORD)}
    if way.mechanism == BEARER:
        found |= {"sasl_oauth_token_provider": "Tokens()"}
    return found


def _arguments(config: dict[str, str], indent: int = 4) -> str:
    if len(config) == 1:
        return ", ".join(f"{name}={value}" for name, value in config.items())
    lines = "".join(f"{' ' * indent}{name}={value},\n" for name, value in config.items())
    return f"\n{lines}{' ' * (indent - 4)}"
