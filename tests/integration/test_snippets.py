"""What the console says to paste into a client does what it says: run as it stands against a live instance, by each way to come.

A reader replaces USER, PASSWORD and TOKEN, and puts files beside it by the names that it calls them. Where librdkafka and Java
log in by tokens, they ask an address for them: `test_logging_in_by_token.py` has one. Of Spring Boot no program runs here: what
its properties hand to Kafka's client is what Kafka's own producer is given.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from controlplane.console.snippets import CLIENTS, CONSUMERS, snippets
from controlplane.console.snippets.way import AUTHORITY, BOTH, CERTIFICATE, KEY, PASSWORD, TOKEN, USER
from tests.clients.checks import READ_ONLY
from tests.clients.clients import PROGRAMS
from tests.clients.instance import Served
from tests.clients.rows import ROWS, Row
from tests.conformance import fixtures
from tests.support import apache_kafka
from tests.support.apache_kafka import NotAvailableError

pytestmark = pytest.mark.integration

FEW = [row for row in ROWS if row.security != "sasl_plaintext" or row.mechanism == "SCRAM-SHA-256"]
"""Each security, and each mechanism."""
NO_TOKEN_OF_OURS = {"python", "kcat", "java", "spring", "tools"}
TIMEOUT_S = 90
WORDS = {USER: "user", PASSWORD: "password", TOKEN: "password"}
FILES = {AUTHORITY: "ca", CERTIFICATE: "certificate", KEY: "key", BOTH: "keystore"}
"""What stands in a snippet, and what it is of whom it is for."""


@pytest.fixture(scope="module")
def served(running_cluster, tmp_path_factory):
    made = Served(running_cluster.tenant, tmp_path_factory.mktemp("certificates"))
    yield made
    running_cluster.forget(made.tenant)


def pasted(served: Served, row: Row, client: str, topic: str, folder: Path, member: str = "text") -> str:
    """A snippet in which a reader has replaced what there is to replace; its files are in the folder."""
    access = served.access(row, "right")
    mechanisms = [row.mechanism] if row.mechanism else []
    found = snippets(
        access["bootstrap"], topic, security=row.security, mechanisms=mechanisms, shows=row.shows_certificate
    )
    text = {each.key: getattr(each, member) for each in found}[client]
    for word, name in WORDS.items():
        text = re.sub(rf"\b{word}\b", access[name], text)
    for file, name in FILES.items():
        if access[name]:
            shutil.copy(access[name], folder / file)
    return text


def run(command: list[str], folder: Path, **environment: str) -> None:
    done = ended(command, folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr


def ended(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, **environment},
    )


def line_of(text: str, word: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(word)]
    return line


def by_python(text: str, folder: Path) -> None:
    (folder / "snippet.py").write_text(text)
    run([sys.executable, "-W", "ignore", "snippet.py"], folder)


def by_kcat(text: str, folder: Path) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt-get install kcat)")
    run(["sh", "-c", line_of(text, "echo hello")], folder)


def by_node(text: str, folder: Path) -> None:
    (folder / "snippet.js").write_text(text)
    run(["node", "snippet.js"], folder, NODE_PATH=str(fixtures.kafkajs() / "node_modules"))


def by_go(program: str):
    def build_and_run(text: str, folder: Path) -> None:
        (folder / "main.go").write_text(text + "\n")
        assert subprocess.run(["gofmt", "-l", "main.go"], cwd=folder, capture_output=True, check=True).stdout == b""
        for name in ("go.mod", "go.sum"):
            shutil.copy(PROGRAMS / program / name, folder)
        fixtures.go_program(PROGRAMS / program)  # what it needs is here from now on
        run(["go", "build", "-mod=readonly", "-buildvcs=false", "-o", "snippet", "."], folder)
        run(["./snippet"], folder)

    return build_and_run


def console_producer(folder: Path) -> None:
    """As in the folder of Kafka."""
    (folder / "bin").mkdir()
    fixtures.tool(folder / "bin" / "kafka-console-producer.sh", "kafka.tools.ConsoleProducer", apache_kafka.jars())


def by_tools(text: str, folder: Path) -> None:
    console_producer(folder)
    run(["sh", "-c", text.partition("# read")[0]], folder)


def by_properties(text: str, folder: Path) -> None:
    """Java's, and what Spring Boot hands to Kafka's client."""
    console_producer(folder)
    lines = [line.removeprefix("spring.kafka.properties.") for line in text.splitlines()]
    properties = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    addresses = properties.get("bootstrap.servers") or properties["spring.kafka.bootstrap-servers"]
    topic = folder.name
    kept = {
        name: value for name, value in properties.items() if name.startswith(("security.", "sasl.", "ssl.", "acks"))
    }
    (folder / "client.properties").write_text("".join(f"{name}={value}\n" for name, value in kept.items()))
    command = f"bin/kafka-console-producer.sh --bootstrap-server {addresses} --producer.config client.properties"
    run(["sh", "-c", f"echo hello | {command} --topic {topic}"], folder)


HOW = {
    "python": by_python,
    "kafka-python": by_python,
    "aiokafka": by_python,
    "kcat": by_kcat,
    "java": by_properties,
    "spring": by_properties,
    "tools": by_tools,
    "node": by_node,
    "franz-go": by_go("franz_go"),
    "sarama": by_go("sarama"),
}
HERE = ("python", "kafka-python", "aiokafka", "kcat")
"""Whose clients are installed with the tests; those of the others are fetched and built first."""


def check(served: Served, row: Row, client: str, tmp_path: Path) -> None:
    if row.mechanism == "OAUTHBEARER" and client in NO_TOKEN_OF_OURS:
        pytest.skip("it asks an address for its token")
    topic = f"orders-{client}-{row.name.replace(' ', '-')}".lower()
    served.make_topic(topic)
    folder = tmp_path / topic
    folder.mkdir()
    HOW[client](pasted(served, row, client, topic, folder), folder)
    assert [value for records in served.log(topic).values() for _, value in records] == [b"hello"]


def test_there_is_a_way_to_run_each_of_them():
    assert set(HOW) == {key for key, _, _ in CLIENTS}


@pytest.mark.parametrize("row", FEW, ids=[row.name for row in FEW])
@pytest.mark.parametrize("client", HERE)
def test_it_writes_a_record(served, row, client, tmp_path):
    check(served, row, client, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
@pytest.mark.parametrize("client", sorted(set(HOW) - set(HERE)))
def test_it_writes_a_record_by_a_client_that_is_fetched_first(served, row, client, tmp_path):
    try:
        check(served, row, client, tmp_path)
    except NotAvailableError as problem:
        pytest.skip(str(problem))


SASL = next(row for row in ROWS if (row.security, row.mechanism) == ("sasl_plaintext", "SCRAM-SHA-256"))


@pytest.mark.parametrize("client", ["python", "kafka-python", "aiokafka"])
def test_one_that_may_not_write_says_so_and_fails(served, client, tmp_path):
    """A program that ends well has written: nobody looks for records that it has lost without a word."""
    (tmp_path / "snippet.py").write_text(pasted(served, SASL, client, READ_ONLY, tmp_path))
    done = ended([sys.executable, "-W", "ignore", "snippet.py"], tmp_path)
    assert done.returncode == 1
    assert "uthorization" in done.stderr


def test_kcat_says_that_it_may_not_write(served, tmp_path):
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt-get install kcat)")
    line = line_of(pasted(served, SASL, "kcat", READ_ONLY, tmp_path), "echo hello")
    assert "uthorization" in ended(["sh", "-c", line], tmp_path).stderr


def consumed(command: list[str], folder: Path, **environment: str) -> None:
    """It goes on reading: stopped once it has said what there is."""
    with (folder / "stderr").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **environment}
        )
    deadline = threading.Timer(TIMEOUT_S, process.kill)
    deadline.start()
    try:
        assert b"hello" in process.stdout.readline(), (folder / "stderr").read_text()
    finally:
        deadline.cancel()
        process.kill()
        process.communicate()


def check_consumer(served: Served, row: Row, client: str, tmp_path: Path) -> None:
    if row.mechanism == "OAUTHBEARER" and client in NO_TOKEN_OF_OURS:
        pytest.skip("it asks an address for its token")
    topic = f"orders-read-{client}-{row.name.replace(' ', '-')}".lower()
    served.make_topic(topic)
    by_python(pasted(served, SASL, "python", topic, tmp_path), tmp_path)
    text = pasted(served, row, client, topic, tmp_path, "consumer")
    text = re.sub(r"\bmy-group\b", f"readers-{topic}", text)
    if client == "node":
        (tmp_path / "reads.js").write_text(text)
        consumed(["node", "reads.js"], tmp_path, NODE_PATH=str(fixtures.kafkajs() / "node_modules"))
    else:
        (tmp_path / "reads.py").write_text(text)
        consumed([sys.executable, "-W", "ignore", "reads.py"], tmp_path)


@pytest.mark.parametrize("row", FEW, ids=[row.name for row in FEW])
@pytest.mark.parametrize("client", sorted(set(CONSUMERS) & set(HERE)))
def test_its_consumer_reads_a_record(served, row, client, tmp_path):
    check_consumer(served, row, client, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
@pytest.mark.parametrize("client", sorted(set(CONSUMERS) - set(HERE)))
def test_its_consumer_reads_a_record_by_a_client_that_is_fetched_first(served, row, client, tmp_path):
    try:
        check_consumer(served, row, client, tmp_path)
    except NotAvailableError as problem:
        pytest.skip(str(problem))
