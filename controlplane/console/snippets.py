"""What to paste into a client. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_PYTHON = """\
# pip install confluent-kafka
from confluent_kafka import Producer

producer = Producer({{"bootstrap.servers": "{bootstrap}"}})
producer.produce("{topic}", b"hello")
producer.flush()
"""

_JAVA = """\
bootstrap.servers={bootstrap}
security.protocol=PLAINTEXT
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
kcat -b {bootstrap} -L
# write a record
echo hello | kcat -b {bootstrap} -t {topic} -P
# read from the beginning, and go on reading
kcat -b {bootstrap} -t {topic} -C -o beginning
"""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One tab of the connection guide: its title and what to copy."""

    key: str
    title: str
    text: str


def snippets(bootstrap: str, topic: str = "my-topic") -> list[Snippet]:
    """For the clients people ask for most."""
    return [
        Snippet(key, title, text.format(bootstrap=bootstrap, topic=topic).rstrip("\n"))
        for key, title, text in (
            ("python", "Python", _PYTHON),
            ("java", "Java properties", _JAVA),
            ("kcat", "kcat", _KCAT),
        )
    ]
