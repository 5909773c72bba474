"""What to paste into a client, by the security of the route that it comes by. Pure.

way       the route, the words that a reader replaces, and a file
native    librdkafka's: confluent-kafka for Python, kcat
python    kafka-python, aiokafka
jvm       Java, Kafka's own tools, Spring Boot
node      kafkajs
go        franz-go, sarama

Each is run against a live instance by tests (`tests/integration/test_snippets.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.snippets.programs import go, jvm, native, node, python
from controlplane.snippets.programs.way import PREFERRED, File, Way

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY_TOPIC = "my-topic"
CLIENTS = (
    ("python", "Python", native.python),
    ("kafka-python", "kafka-python", python.kafka_python),
    ("aiokafka", "aiokafka", python.aiokafka),
    ("java", "Java", jvm.java),
    ("spring", "Spring Boot", jvm.spring),
    ("tools", "Kafka CLI", jvm.tools),
    ("kcat", "kcat", native.kcat),
    ("node", "Node.js", node.kafkajs),
    ("franz-go", "Go, franz-go", go.franz_go),
    ("sarama", "Go, sarama", go.sarama),
)
"""Key, title, and what writes the text."""
KEYS = tuple(key for key, _, _ in CLIENTS)
CONSUMERS = {
    "python": native.python_consumer,
    "kafka-python": python.kafka_python_consumer,
    "aiokafka": python.aiokafka_consumer,
    "node": node.kafkajs_consumer,
    "franz-go": go.franz_go_consumer,
    "sarama": go.sarama_consumer,
}
"""By key: a program of its own that reads, where the text is a program that writes."""
MORE = {"java": jvm.java_files, "spring": jvm.spring_files}
"""By key: files of the program beside its text, which is the program's configuration."""

_PYTHON, _GO = ("produce.py", "consume.py"), ("produce.go", "consume.go")
NAMES = {
    "python": _PYTHON,
    "kafka-python": _PYTHON,
    "aiokafka": _PYTHON,
    "java": ("client.properties", ""),
    "spring": ("src/main/resources/application.properties", ""),
    "tools": ("commands.sh", ""),
    "kcat": ("commands.sh", ""),
    "node": ("produce.js", "consume.js"),
    "franz-go": _GO,
    "sarama": _GO,
}
"""What the text and the program that reads are called as files."""
_RUN_PYTHON = ("python produce.py", "python consume.py")
_RUN_GO = ("go mod init example", "go mod tidy", "go run produce.go", "go run consume.go")
RUN = {
    "python": ("pip install confluent-kafka", *_RUN_PYTHON),
    "kafka-python": ("pip install kafka-python", *_RUN_PYTHON),
    "aiokafka": ("pip install aiokafka", *_RUN_PYTHON),
    "java": ("mvn -q compile exec:java",),
    "spring": ("mvn -q spring-boot:run",),
    "tools": ("sh commands.sh",),
    "kcat": ("sh commands.sh",),
    "node": ("npm install kafkajs", "node produce.js", "node consume.js"),
    "franz-go": _RUN_GO,
    "sarama": _RUN_GO,
}
"""Lines of a shell, in the folder of these files; Kafka's tools in the folder of Kafka."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One tab of the connection guide: its title and what to copy. `consumer`: a second text, empty where there is none.

    `more`: files that belong to the text; `run`: lines of a shell that start it.
    """

    key: str
    title: str
    text: str
    consumer: str = ""
    more: tuple[File, ...] = ()
    run: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the text is called as a file."""
        return NAMES[self.key][0]

    @property
    def files(self) -> tuple[File, ...]:
        """Everything, as files that `run` can be typed beside."""
        reads = (File(NAMES[self.key][1], self.consumer),) if self.consumer else ()
        return File(self.name, self.text), *reads, *self.more


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
    way = Way(bootstrap, topic, security, mechanism_of(mechanisms), shows)
    return [
        Snippet(
            key,
            title,
            text(way).rstrip("\n"),
            CONSUMERS[key](way).rstrip("\n") if key in CONSUMERS else "",
            tuple(File(each.name, each.text.rstrip("\n")) for each in MORE[key](way)) if key in MORE else (),
            RUN[key],
        )
        for key, title, text in CLIENTS
    ]


def mechanism_of(mechanisms: Sequence[str]) -> str:
    """By which of a route's mechanisms the programs log in where nobody has said one; empty: nobody logs in."""
    return next((each for each in PREFERRED if each in mechanisms), "")
