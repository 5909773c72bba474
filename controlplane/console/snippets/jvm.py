"""Kafka's own client: properties, its tools, Spring Boot. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.console.snippets.way import AUTHORITY, BEARER, BOTH, CLIENT, PASSWORD, SECRET, TOKENS, USER

if TYPE_CHECKING:
    from controlplane.console.snippets.way import Way

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_FILE = "client.properties"

_JAVA = """\
bootstrap.servers={bootstrap}
{security}acks=all
key.serializer=org.apache.kafka.common.serialization.StringSerializer
value.serializer=org.apache.kafka.common.serialization.StringSerializer
group.id=my-group
auto.offset.reset=earliest
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
value.deserializer=org.apache.kafka.common.serialization.StringDeserializer
"""

_SPRING = """\
# src/main/resources/application.properties
spring.kafka.bootstrap-servers={bootstrap}
{security}spring.kafka.producer.acks=all
spring.kafka.consumer.group-id=my-group
spring.kafka.consumer.auto-offset-reset=earliest
spring.kafka.template.default-topic={topic}
"""

_TOOLS = """\
{file}# write a record
echo hello | bin/kafka-console-producer.sh --bootstrap-server {bootstrap}{producer} --topic {topic}
# read from the beginning, and go on reading
bin/kafka-console-consumer.sh --bootstrap-server {bootstrap}{consumer} --topic {topic} --from-beginning
"""


def java(way: Way) -> str:
    """Of a producer and a consumer."""
    return _JAVA.format(bootstrap=way.bootstrap, security=_lines(way) or "security.protocol=PLAINTEXT\n")


def spring(way: Way) -> str:
    """What spring-kafka's template and listeners are made with: names that it has none of its own for go to the client."""
    return _SPRING.format(bootstrap=way.bootstrap, security=_lines(way, "spring.kafka.properties."), topic=way.topic)


def tools(way: Way) -> str:
    """Commands of a shell, in the folder of Kafka."""
    lines = _lines(way)
    return _TOOLS.format(
        bootstrap=way.bootstrap,
        topic=way.topic,
        file=f"cat > {_FILE} <<'END'\n{lines}END\n" if lines else "",
        producer=f" --producer.config {_FILE}" if lines else "",
        consumer=f" --consumer.config {_FILE}" if lines else "",
    )


def _lines(way: Way, prefix: str = "") -> str:
    """None where nobody logs in and there is no TLS."""
    if way.security == "plaintext":
        return ""
    return "".join(f"{prefix}{name}={value}\n" for name, value in _properties(way).items())


def _properties(way: Way) -> dict[str, str]:
    found = {"security.protocol": way.security.upper()}
    if way.mechanism:
        found |= {"sasl.mechanism": way.mechanism, "sasl.jaas.config": _jaas(way.mechanism)}
    if way.mechanism == BEARER:
        found |= {"sasl.oauthbearer.token.endpoint.url": TOKENS}
        found["sasl.login.callback.handler.class"] = (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        )
    if way.is_tls:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": AUTHORITY}
    if way.shows:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": BOTH}
    return found


def _jaas(mechanism: str) -> str:
    if mechanism == BEARER:
        return f'{_OAUTH_MODULE} required clientId="{CLIENT}" clientSecret="{SECRET}";'
    module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
    return f'{module} required username="{USER}" password="{PASSWORD}";'
