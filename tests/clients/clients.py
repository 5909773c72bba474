"""The clients of the matrix: versions, how each one's program is started, and what a client is known not to have.

Versions are pinned: of the Python clients in requirements/develop.txt, of the Java client by Apache Kafka's own pom
(`tests.support.apache_kafka`), of kafkajs in `tests.conformance.fixtures`, of the Go clients in their go.mod and go.sum.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from tests.clients.checks import REAUTHENTICATION
from tests.conformance import fixtures
from tests.support import apache_kafka

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


@dataclass(frozen=True)
class Client:
    """`command` may have to fetch and build first: it raises NotAvailableError where that cannot be."""

    name: str
    version: str
    command: Callable[[], list[str]]
    folder: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Mechanisms and checks that it does not have, with where that stands."""
    vague: Mapping[str, str] = field(default_factory=dict)
    """Jobs, or a job by one mechanism, in which it ends in time and does not say why it was refused, with the reason."""


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.clients.programs.{module}"]


def _java() -> list[str]:
    classpath = fixtures.java_classes(PROGRAMS / "JavaProgram.java")
    return ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", _QUIET, "-cp", classpath, "JavaProgram"]


def _kafkajs() -> list[str]:
    # Found beside the modules as NODE_PATH would have it, which is known only when they are there.
    modules = fixtures.kafkajs() / "node_modules"
    return ["env", f"NODE_PATH={modules}", "node", str(PROGRAMS / "kafkajs.js")]


def _go(folder: str) -> Callable[[], list[str]]:
    return lambda: [str(fixtures.go_program(PROGRAMS / folder))]


def _required(folder: str, module: str) -> str:
    found = re.search(
        rf"^\s*(?:require )?{re.escape(module)} v(\S+)", (PROGRAMS / folder / "go.mod").read_text(), re.MULTILINE
    )
    assert found is not None, f"{module} is not in {folder}/go.mod"
    return found[1]


_AFTER_ITS_HANDSHAKE = (
    "in TLS 1.3 the alert comes when the client's handshake is over; aiokafka tells of a connection that was closed"
)

_WITH_THE_END = (
    "what it receives together with the end of the connection it drops (kafka/net/transport.py, _sock_recv), so that it hears "
    "by chance only why it is refused"
)

_ANY_ANSWER = (
    "it takes any answer to its token for a login: what RFC 7628 has the server say first, and the error behind it, "
    "it does not read"
)

CLIENTS = {
    client.name: client
    for client in (
        Client("librdkafka", f"{version('confluent-kafka')} (confluent-kafka)", _python("librdkafka")),
        Client(
            "kafka-python", version("kafka-python"), _python("kafka_python"), vague={"a wrong password": _WITH_THE_END}
        ),
        Client(
            "aiokafka",
            version("aiokafka"),
            _python("aiokafka_program"),
            lacks={
                REAUTHENTICATION: "aiokafka decodes session_lifetime_ms (aiokafka/protocol/admin.py) and nothing of it reads "
                "it: no KIP-368. The broker ends its connections, and it connects anew",
            },
            vague={
                **dict.fromkeys(("no certificate", "a certificate of another CA"), _AFTER_ITS_HANDSHAKE),
                "a wrong password by OAUTHBEARER": f"{_ANY_ANSWER} (aiokafka/conn.py, OAuthAuthenticator.step)",
            },
        ),
        Client("java", apache_kafka.VERSION, _java),
        Client(
            "kafkajs",
            fixtures.KAFKAJS.partition("@")[2],
            _kafkajs,
            vague={"a wrong password by OAUTHBEARER": f"{_ANY_ANSWER} (src/broker/saslAuthenticator/oauthBearer.js)"},
        ),
        Client(
            "franz-go",
            _required("franz_go", "github.com/twmb/franz-go"),
            _go("franz_go"),
            vague={
                "a wrong password by OAUTHBEARER": "what RFC 7628 has the server say to a token that is not good it calls "
                "unexpected data (pkg/sasl/oauth/oauth.go) and ends the connection; the error behind it, it does not ask for"
            },
        ),
        Client("sarama", _required("sarama", "github.com/IBM/sarama"), _go("sarama")),
    )
}
