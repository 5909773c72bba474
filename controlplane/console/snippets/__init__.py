"""What to paste into a client, by the security of the route that it comes by. Pure.

way       the route, and the words that a reader replaces
native    librdkafka's: confluent-kafka for Python, kcat
python    kafka-python, aiokafka
jvm       Java's properties, Kafka's own tools, Spring Boot
node      kafkajs
go        franz-go, sarama

Each is run against a live instance by tests (`tests/integration/test_snippets.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.console.snippets import go, jvm, native, node, python
from controlplane.console.snippets.way import PREFERRED, Way

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY_TOPIC = "my-topic"
CLIENTS = (
    ("python", "Python", native.python),
    ("kafka-python", "kafka-python", python.kafka_python),
    ("aiokafka", "aiokafka", python.aiokafka),
    ("java", "Java properties", jvm.java),
    ("spring", "Spring Boot", jvm.spring),
    ("tools", "Kafka CLI", jvm.tools),
    ("kcat", "kcat", native.kcat),
    ("node", "Node.js", node.kafkajs),
    ("franz-go", "Go, franz-go", go.franz_go),
    ("sarama", "Go, sarama", go.sarama),
)
"""Key, title, and what writes the text."""
CONSUMERS = {
    "python": native.python_consumer,
    "kafka-python": python.kafka_python_consumer,
    "node": node.kafkajs_consumer,
}
"""By key: a program of its own that reads, where the text is a program that writes."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One tab of the connection guide: its title and what to copy. `consumer`: a second text, empty where there is none."""

    key: str
    title: str
    text: str
    consumer: str = ""


def snippets(
    bootstrap: str,
    topic: str = ANY_TOPIC,
    *,
    security: str = "plaintext",
    mechanisms: Sequence[str] = (),
    shows: bool = False,
) -> list[Snippet]:
    """For the clients people ask for most. USER, PASSWORD and names of files are for the reader to replace.

    `shows`: the route wants a certificate of each client.
    """
    mechanism = next((each for each in PREFERRED if each in mechanisms), "")
    way = Way(bootstrap, topic, security, mechanism, shows)
    return [
        Snippet(key, title, text(way).rstrip("\n"), CONSUMERS[key](way).rstrip("\n") if key in CONSUMERS else "")
        for key, title, text in CLIENTS
    ]
