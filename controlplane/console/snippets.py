"""What to paste into a client, by the security of the route that it comes by. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_PREFERRED = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
USER, PASSWORD, AUTHORITY = "USER", "PASSWORD", "ca.pem"
CERTIFICATE, KEY, BOTH = "client.crt", "client.key", "client.pem"
"""Of a client that shows one; Java wants key and certificate in one file."""
TOKENS, CLIENT, SECRET = "https://TOKENS", "CLIENT", "SECRET"

_PYTHON = """\
# pip install confluent-kafka
from confluent_kafka import Producer

producer = Producer({config})
producer.produce("{topic}", b"hello")
producer.flush()
"""

_KAFKA_PYTHON = """\
# pip install kafka-python
from kafka import KafkaProducer

producer = KafkaProducer({arguments})
producer.send("{topic}", b"hello")
producer.flush()
"""

_JAVA = """\
bootstrap.servers={bootstrap}
{security}
acks=all
key.serializer=org.apache.kafka.common.serialization.StringSerializer
value.serializer=org.apache.kafka.common.serialization.StringSerializer
group.id=my-group
auto.offset.reset=earliest
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
value.deserializer=org.apache.kafka.common.serialization.StringDeserializer
"""

_KCAT = """\
# what there is
kcat -b {bootstrap}{security} -L
# write a record
echo hello | kcat -b {bootstrap}{security} -t {topic} -P
# read from the beginning, and go on reading
kcat -b {bootstrap}{security} -t {topic} -C -o beginning
"""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One tab of the connection guide: its title and what to copy."""

    key: str
    title: str
    text: str


def snippets(
    bootstrap: str,
    topic: str = "my-topic",
    *,
    security: str = "plaintext",
    mechanisms: Sequence[str] = (),
    shows: bool = False,
) -> list[Snippet]:
    """For the clients people ask for most. USER, PASSWORD and names of files are for the reader to replace.

    `shows`: the route wants a certificate of each client.
    """
    mechanism = next((each for each in _PREFERRED if each in mechanisms), "")
    native = librdkafka(security, mechanism, shows=shows)
    properties = java(security, mechanism, shows=shows)
    texts = (
        ("python", "Python", _PYTHON.format(config=_dict({"bootstrap.servers": bootstrap, **native}), topic=topic)),
        ("kafka-python", "kafka-python", _KAFKA_PYTHON.format(
            arguments=_arguments({"bootstrap_servers": bootstrap, **kafka_python(security, mechanism, shows=shows)}), topic=topic
        )),
        ("java", "Java properties", _JAVA.format(
            bootstrap=bootstrap, security="\n".join(f"{name}={value}" for name, value in properties.items())
        )),
        ("kcat", "kcat", _KCAT.format(
            bootstrap=bootstrap, topic=topic, security="".join(f" -X {name}={value}" for name, value in native.items())
        )),
    )  # fmt: skip
    return [Snippet(key, title, text.rstrip("\n")) for key, title, text in texts]


def librdkafka(security: str, mechanism: str, *, shows: bool = False) -> dict[str, str]:
    """Its properties, as confluent-kafka and kcat take them; none where nobody logs in and there is no TLS."""
    if security == "plaintext":
        return {}
    found = {"security.protocol": security}
    if mechanism == "OAUTHBEARER":
        found |= {"sasl.mechanism": mechanism, "sasl.oauthbearer.method": "oidc"}
        found |= {"sasl.oauthbearer.token.endpoint.url": TOKENS}
        found |= {"sasl.oauthbearer.client.id": CLIENT, "sasl.oauthbearer.client.secret": SECRET}
    elif mechanism:
        found |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    if shows:
        found |= {"ssl.certificate.location": CERTIFICATE, "ssl.key.location": KEY}
    return found | ({"ssl.ca.location": AUTHORITY} if security.endswith("ssl") else {})


def kafka_python(security: str, mechanism: str, *, shows: bool = False) -> dict[str, str]:
    """Arguments of kafka-python's clients."""
    if security == "plaintext":
        return {}
    found = {"security_protocol": security.upper()}
    if mechanism:
        found |= {"sasl_mechanism": mechanism}
    if mechanism and mechanism != "OAUTHBEARER":  # which wants an object: its documentation says which
        found |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    if shows:
        found |= {"ssl_certfile": CERTIFICATE, "ssl_keyfile": KEY}
    return found | ({"ssl_cafile": AUTHORITY} if security.endswith("ssl") else {})


def java(security: str, mechanism: str, *, shows: bool = False) -> dict[str, str]:
    """Properties of Kafka's own client."""
    found = {"security.protocol": security.upper()}
    if mechanism:
        found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": _jaas(mechanism)}
    if mechanism == "OAUTHBEARER":
        found |= {"sasl.oauthbearer.token.endpoint.url": TOKENS}
        found["sasl.login.callback.handler.class"] = (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        )
    if security.endswith("ssl"):
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": AUTHORITY}
    if shows:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": BOTH}
    return found


def _jaas(mechanism: str) -> str:
    if mechanism == "OAUTHBEARER":
        return f'{_OAUTH_MODULE} required clientId="{CLIENT}" clientSecret="{SECRET}";'
    module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
    return f'{module} required username="{USER}" password="{PASSWORD}";'


def _dict(config: dict[str, str]) -> str:
    if len(config) == 1:
        return json.dumps(config)
    return "{\n" + "".join(f"    {json.dumps(name)}: {json.dumps(value)},\n" for name, value in config.items()) + "}"


def _arguments(config: dict[str, str]) -> str:
    if len(config) == 1:
        return ", ".join(f"{name}={json.dumps(value)}" for name, value in config.items())
    return "\n" + "".join(f"    {name}={json.dumps(value)},\n" for name, value in config.items())
