"""kafkajs. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from controlplane.snippets.programs.way import AUTHORITY, BEARER, CERTIFICATE, GROUP, KEY, PASSWORD, TOKEN, USER

if TYPE_CHECKING:
    from controlplane.snippets.programs.way import Way

_KAFKAJS = """\
// npm install kafkajs
{files}const {{ Kafka }} = require("kafkajs");

const kafka = new Kafka({{
  brokers: {brokers},
{security}}});

async function main() {{
{body}}}

main().catch((error) => {{
  console.error(error);
  process.exit(1);
}});
"""

_PRODUCER = """\
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({{ topic: "{topic}", messages: [{{ value: "hello" }}] }});
  await producer.disconnect();
"""

_CONSUMER = """\
  const consumer = kafka.consumer({{ groupId: "{group}" }});
  await consumer.connect();
  await consumer.subscribe({{ topic: "{topic}", fromBeginning: true }});
  await consumer.run({{ eachMessage: async ({{ message }}) => console.log(message.value.toString()) }});
"""


def kafkajs(way: Way) -> str:
    """A producer."""
    return _program(way, _PRODUCER.format(topic=way.topic))


def kafkajs_consumer(way: Way) -> str:
    """A member of a group, which goes on reading."""
    return _program(way, _CONSUMER.format(topic=way.topic, group=GROUP))


def _program(way: Way, body: str) -> str:
    security = (f"  ssl: {_tls(way)},\n" if way.is_tls else "") + (f"  sasl: {_sasl(way)},\n" if way.mechanism else "")
    return _KAFKAJS.format(
        files='const fs = require("fs");\n' if way.is_tls else "",
        brokers=json.dumps(way.brokers),
        security=security,
        body=body,
    )


def _tls(way: Way) -> str:
    members = {"ca": f"[{_content(AUTHORITY)}]"}
    if way.shows:
        members |= {"cert": _content(CERTIFICATE), "key": _content(KEY)}
    return _object(members)


def _content(path: str) -> str:
    return f"fs.readFileSync({json.dumps(path)})"


def _sasl(way: Way) -> str:
    mechanism = json.dumps(way.mechanism.lower())
    if way.mechanism == BEARER:
        provider = f"async () => ({{ value: {json.dumps(TOKEN)} }})"
        return _object({"mechanism": mechanism, "oauthBearerProvider": provider})
    return _object({"mechanism": mechanism, "username": json.dumps(USER), "password": json.dumps(PASSWORD)})


def _object(members: dict[str, str]) -> str:
    return "{ " + ", ".join(f"{name}: {value}" for name, value in members.items()) + " }"
