"""librdkafka: confluent-kafka and kcat. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from controlplane.snippets.programs.way import (
    AUTHORITY,
    BEARER,
    CERTIFICATE,
    CLIENT,
    GROUP,
    KEY,
    PASSWORD,
    SECRET,
    TOKENS,
    USER,
)

if TYPE_CHECKING:
    from controlplane.snippets.programs.way import Way

_PYTHON = """\
# pip install confluent-kafka
import sys

from confluent_kafka import Producer

failures = []


def delivered(error, message):
    if error is not None:
        failures.append(error.str())


producer = Producer({config})
producer.produce("{topic}", b"hello", on_delivery=delivered)
producer.flush()
if failures:
    sys.exit("Not written: " + failures[0])
"""

_PYTHON_CONSUMER = """\
# pip install confluent-kafka
import sys

from confluent_kafka import Consumer

consumer = Consumer({config})
consumer.subscribe(["{topic}"])
try:
    while True:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            sys.exit("Not read: " + message.error().str())
        print(message.value(), flush=True)
finally:
    consumer.close()
"""

_KCAT = """\
# what there is
kcat -b {bootstrap}{security} -L
# write a record
echo hello | kcat -b {bootstrap}{security} -t {topic} -P
# read from the beginning, and go on reading
kcat -b {bootstrap}{security} -t {topic} -C -o beginning
"""


def python(way: Way) -> str:
    """A producer by confluent-kafka."""
    return _PYTHON.format(config=_dict({"bootstrap.servers": way.bootstrap, **_properties(way)}), topic=way.topic)


def python_consumer(way: Way) -> str:
    """A member of a group by confluent-kafka, which goes on reading."""
    config = {
        "bootstrap.servers": way.bootstrap,
        **_properties(way),
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
    }
    return _PYTHON_CONSUMER.format(config=_dict(config), topic=way.topic)


def kcat(way: Way) -> str:
    """Commands of a shell."""
    security = "".join(f" -X {name}={value}" for name, value in _properties(way).items())
    return _KCAT.format(bootstrap=way.bootstrap, topic=way.topic, security=security)


def _properties(way: Way) -> dict[str, str]:
    """None where nobody logs in and there is no TLS."""
    if way.security == "plaintext":
        return {}
    found = {"security.protocol": way.security}
    if way.mechanism == BEARER:
        found |= {"sasl.mechanism": way.mechanism, "sasl.oauthbearer.method": "oidc"}
        found |= {"sasl.oauthbearer.token.endpoint.url": TOKENS}
        found |= {"sasl.oauthbearer.client.id": CLIENT, "sasl.oauthbearer.client.secret": SECRET}
    elif way.mechanism:
        found |= {"sasl.mechanism": way.mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    if way.shows:
        found |= {"ssl.certificate.location": CERTIFICATE, "ssl.key.location": KEY}
    return found | ({"ssl.ca.location": AUTHORITY} if way.is_tls else {})


def _dict(config: dict[str, str]) -> str:
    if len(config) == 1:
        return json.dumps(config)
    return "{\n" + "".join(f"    {json.dumps(name)}: {json.dumps(value)},\n" for name, value in config.items()) + "}"
