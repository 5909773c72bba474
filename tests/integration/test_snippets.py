"""What the console says to paste into a client does what it says: run as it stands against a live instance, by each way to come.

A reader replaces USER, PASSWORD and TOKEN, and puts files beside it by the names that it calls them. Where librdkafka and Java
log in by tokens, they ask an address for them: `test_logging_in_by_token.py` has one. Of each client that is not installed with
the tests, one program of one security writes and reads in `make test`, where its tool is there; all securities are asked at
length. What they need is fetched once, by Maven, npm and Go's own client, into `var/conformance`. Where a tool or the network is
away its tests skip; with SLUICE_CLIENTS_REQUIRED=1 they fail, for a machine that is meant to have all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from controlplane.snippets.programs import CLIENTS, CONSUMERS, MORE, Snippet, snippets
from controlplane.snippets.programs.way import AUTHORITY, BOTH, CERTIFICATE, KEY, PASSWORD, TOKEN, USER
from tests.clients.checks import READ_ONLY
from tests.clients.clients import PROGRAMS
from tests.clients.instance import Served
from tests.clients.rows import MECHANISMS, ROWS, Row
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


def pasted(served: Served, row: Row, client: str, topic: str, folder: Path) -> Snippet:
    """A snippet in which a reader has replaced what there is to replace; its files are in the folder.

    Its group is one of this topic's own, which clients of the instance may be in.
    """
    access = served.access(row, "right")
    mechanisms = [row.mechanism] if row.mechanism else []
    found = snippets(
        access["bootstrap"], topic, security=row.security, mechanisms=mechanisms, shows=row.shows_certificate
    )
    (snippet,) = [each for each in found if each.key == client]

    def replaced(text: str) -> str:
        for word, name in WORDS.items():
            text = re.sub(rf"\b{word}\b", access[name], text)
        return re.sub(r"\bmy-group\b", f"readers-{topic}", text)

    for file, name in FILES.items():
        if access[name]:
            shutil.copy(access[name], folder / file)
    more = tuple(replace(each, text=replaced(each.text)) for each in snippet.more)
    return replace(snippet, text=replaced(snippet.text), consumer=replaced(snippet.consumer), more=more)


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


def consumed(command: list[str], folder: Path, **environment: str) -> None:
    """It goes on reading: stopped, with whatever it has started, once it has said what there is."""
    with (folder / "stderr").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    deadline = threading.Timer(TIMEOUT_S, os.killpg, (process.pid, signal.SIGKILL))
    deadline.start()
    said = []
    try:
        for line in process.stdout:
            said.append(line.decode())
            if line.replace(b"\x1b[0m", b"").strip() in (b"hello", b"b'hello'"):  # Maven sets the colour back
                return
        pytest.fail("".join(said) + (folder / "stderr").read_text())
    finally:
        deadline.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def written(folder: Path, snippet: Snippet) -> None:
    for file in snippet.files:
        place = folder / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.text + "\n")


def python_writes(snippet: Snippet, folder: Path) -> None:
    written(folder, snippet)
    run([sys.executable, "-W", "ignore", "produce.py"], folder)


def python_reads(snippet: Snippet, folder: Path) -> None:
    written(folder, snippet)
    consumed([sys.executable, "-W", "ignore", "consume.py"], folder)


def not_here(why: str) -> NoReturn:
    """A client cannot be had on this machine."""
    if os.environ.get("SLUICE_CLIENTS_REQUIRED") == "1":
        pytest.fail(f"SLUICE_CLIENTS_REQUIRED is set, and {why}", pytrace=False)
    pytest.skip(why)


def needs_kcat() -> None:
    if shutil.which("kcat") is None:
        not_here("kcat is not installed (apt-get install kcat)")


def kcat_writes(snippet: Snippet, folder: Path) -> None:
    needs_kcat()
    run(["sh", "-c", line_of(snippet.text, "echo hello")], folder)


def last_line(text: str) -> str:
    """Of a snippet of commands: the one that goes on reading."""
    return text.splitlines()[-1]


def kcat_reads(snippet: Snippet, folder: Path) -> None:
    needs_kcat()
    # Into a pipe it says nothing before its buffer is full; on a terminal it has none.
    consumed(["stdbuf", "-oL", "sh", "-c", last_line(snippet.text)], folder)


def needs(*tools: str) -> None:
    """What a program is run with. What it is built from may be there from before, without it. Raises NotAvailableError."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise NotAvailableError(f"there is no program `{tool}`")


def modules() -> str:
    needs("node")
    return str(fixtures.kafkajs() / "node_modules")


def node_writes(snippet: Snippet, folder: Path) -> None:
    written(folder, snippet)
    run(["node", "produce.js"], folder, NODE_PATH=modules())


def node_reads(snippet: Snippet, folder: Path) -> None:
    written(folder, snippet)
    consumed(["node", "consume.js"], folder, NODE_PATH=modules())


def go_writes(snippet: Snippet, folder: Path) -> None:
    built(snippet, folder, "produce")
    run(["./produce"], folder)


def go_reads(snippet: Snippet, folder: Path) -> None:
    built(snippet, folder, "consume")
    consumed(["./consume"], folder)


def built(snippet: Snippet, folder: Path, name: str) -> None:
    """One of Go's programs, with the versions that the matrix of clients has."""
    needs("go", "gofmt")
    program = PROGRAMS / snippet.key.replace("-", "_")
    fixtures.go_program(program)  # what it needs is here from now on
    written(folder, snippet)
    assert subprocess.run(["gofmt", "-l", f"{name}.go"], cwd=folder, capture_output=True, check=True).stdout == b""
    for file in ("go.mod", "go.sum"):
        shutil.copy(program / file, folder)
    run(["go", "build", "-mod=readonly", "-buildvcs=false", "-o", name, f"{name}.go"], folder)


def kafkas_tools(folder: Path) -> None:
    """As in the folder of Kafka."""
    needs("java")
    (folder / "bin").mkdir(exist_ok=True)
    classes = {"producer": "kafka.tools.ConsoleProducer", "consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer"}
    for name, main_class in classes.items():
        fixtures.tool(folder / "bin" / f"kafka-console-{name}.sh", main_class, apache_kafka.jars())


def tools_write(snippet: Snippet, folder: Path) -> None:
    kafkas_tools(folder)
    run(["sh", "-c", snippet.text.partition("# read")[0]], folder)


def tools_read(snippet: Snippet, folder: Path) -> None:
    kafkas_tools(folder)
    before, _, _ = snippet.text.partition("# write")
    consumed(["sh", "-c", f"{before}{last_line(snippet.text)}"], folder)


def by_maven(plugin: str, goals: tuple[str, ...]):
    """A program that writes and then reads."""

    def run_it(snippet: Snippet, folder: Path) -> None:
        needs("mvn", "java")
        written(folder, snippet)
        assert snippet.run == (f"mvn -q {' '.join(goals)}",)
        consumed([*fixtures.maven(folder, plugin), *goals], folder, **fixtures.MAVEN_OPTIONS)

    return run_it


java = by_maven("exec", ("compile", "exec:java"))
spring = by_maven("spring-boot", ("spring-boot:run",))
WRITES = {
    "python": python_writes,
    "kafka-python": python_writes,
    "aiokafka": python_writes,
    "kcat": kcat_writes,
    "java": java,
    "spring": spring,
    "tools": tools_write,
    "node": node_writes,
    "franz-go": go_writes,
    "sarama": go_writes,
}
READS = {
    "python": python_reads,
    "kafka-python": python_reads,
    "aiokafka": python_reads,
    "kcat": kcat_reads,
    "tools": tools_read,
    "node": node_reads,
    "franz-go": go_reads,
    "sarama": go_reads,
}
"""Of the clients whose programs do one thing each."""
HERE = ("python", "kafka-python", "aiokafka", "kcat")
"""Whose clients are installed with the tests; those of the others are fetched and built first."""


ONE_EACH = {
    "kcat": "plaintext",
    "java": "sasl_ssl SCRAM-SHA-512",
    "spring": "sasl_ssl PLAIN",
    "tools": "mtls",
    "node": "ssl",
    "franz-go": "sasl_plaintext SCRAM-SHA-256",
    "sarama": "sasl_ssl OAUTHBEARER",
}
"""By which way each of the others comes where there is little time; every security and every mechanism is among them."""
BY_NAME = {row.name: row for row in ROWS}


def skips_tokens(row: Row, client: str) -> None:
    if row.mechanism == "OAUTHBEARER" and client in NO_TOKEN_OF_OURS:
        pytest.skip("it asks an address for its token")


def topic_of(served: Served, row: Row, client: str, tmp_path: Path, what: str = "") -> tuple[str, Path]:
    """A new one, and a folder for what is run."""
    topic = f"orders-{what}{client}-{row.name.replace(' ', '-')}".lower()
    served.make_topic(topic)
    folder = tmp_path / topic
    folder.mkdir()
    return topic, folder


def check(served: Served, row: Row, client: str, tmp_path: Path) -> None:
    skips_tokens(row, client)
    topic, folder = topic_of(served, row, client, tmp_path)
    WRITES[client](pasted(served, row, client, topic, folder), folder)
    assert [value for records in served.log(topic).values() for _, value in records] == [b"hello"]


def test_there_is_a_way_to_run_each_of_them():
    assert set(WRITES) == {key for key, _, _ in CLIENTS}
    assert set(WRITES) - set(READS) == set(MORE)


def test_each_client_runs_every_time_and_every_security_is_among_them():
    assert set(ONE_EACH) | set(HERE) == set(WRITES)
    rows = [BY_NAME[name] for name in ONE_EACH.values()]
    assert {(row.security, row.shows_certificate) for row in rows} == {
        (row.security, row.shows_certificate) for row in ROWS
    }
    assert {row.mechanism for row in rows} == {"", *MECHANISMS}


@pytest.mark.timeout(600)  # the first time, until what it needs is fetched
@pytest.mark.parametrize("client", sorted(ONE_EACH))
def test_its_programs_write_a_record_and_read_it(served, client, tmp_path):
    row = BY_NAME[ONE_EACH[client]]
    topic, folder = topic_of(served, row, client, tmp_path, "both-")
    snippet = pasted(served, row, client, topic, folder)
    try:
        WRITES[client](snippet, folder)
        if client in READS:
            READS[client](snippet, folder)
    except NotAvailableError as problem:
        not_here(str(problem))
    assert [value for records in served.log(topic).values() for _, value in records] == [b"hello"]


@pytest.mark.parametrize("row", FEW, ids=[row.name for row in FEW])
@pytest.mark.parametrize("client", HERE)
def test_it_writes_a_record(served, row, client, tmp_path):
    check(served, row, client, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(600)  # likewise
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
@pytest.mark.parametrize("client", sorted(set(WRITES) - set(HERE)))
def test_it_writes_a_record_by_a_client_that_is_fetched_first(served, row, client, tmp_path):
    try:
        check(served, row, client, tmp_path)
    except NotAvailableError as problem:
        not_here(str(problem))


SASL = next(row for row in ROWS if (row.security, row.mechanism) == ("sasl_plaintext", "SCRAM-SHA-256"))


@pytest.mark.parametrize("client", ["python", "kafka-python", "aiokafka"])
def test_one_that_may_not_write_says_so_and_fails(served, client, tmp_path):
    """A program that ends well has written: nobody looks for records that it has lost without a word."""
    (tmp_path / "snippet.py").write_text(pasted(served, SASL, client, READ_ONLY, tmp_path).text)
    done = ended([sys.executable, "-W", "ignore", "snippet.py"], tmp_path)
    assert done.returncode == 1
    assert "uthorization" in done.stderr


def test_kcat_says_that_it_may_not_write(served, tmp_path):
    needs_kcat()
    line = line_of(pasted(served, SASL, "kcat", READ_ONLY, tmp_path).text, "echo hello")
    assert "uthorization" in ended(["sh", "-c", line], tmp_path).stderr


def check_consumer(served: Served, row: Row, client: str, tmp_path: Path) -> None:
    skips_tokens(row, client)
    topic, folder = topic_of(served, row, client, tmp_path, "read-")
    python_writes(pasted(served, SASL, "python", topic, folder), folder)
    READS[client](pasted(served, row, client, topic, folder), folder)


@pytest.mark.parametrize("row", FEW, ids=[row.name for row in FEW])
@pytest.mark.parametrize("client", sorted(set(CONSUMERS) & set(HERE)))
def test_its_consumer_reads_a_record(served, row, client, tmp_path):
    check_consumer(served, row, client, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(600)  # likewise
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
@pytest.mark.parametrize("client", sorted(set(CONSUMERS) - set(HERE)))
def test_its_consumer_reads_a_record_by_a_client_that_is_fetched_first(served, row, client, tmp_path):
    try:
        check_consumer(served, row, client, tmp_path)
    except NotAvailableError as problem:
        not_here(str(problem))
