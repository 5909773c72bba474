"""The console as a person or a script uses it: what it prints, what it says when something is wrong, how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.integration.clients import create_topic, produce, read_all
from tests.support.ports import free_port
from tests.support.waiting import wait_for

pytestmark = pytest.mark.integration


class Console:
    """Runs it against one address; `status`, `out` and `err` are of the last run."""

    def __init__(self, bootstrap: str) -> None:
        self._begin = [sys.executable, "-m", "dataplane.clients.console", "--bootstrap-server", bootstrap]

    def __call__(self, *words: str, lines: bytes = b"", status: int = 0) -> str:
        done = subprocess.run([*self._begin, *words], input=lines, capture_output=True, timeout=60, check=False)
        self.out, self.err = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == status, f"{done.returncode}: {self.out}{self.err}"
        assert "Traceback" not in self.err
        return self.out

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        command = [*self._begin, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_heed_interrupts)  # noqa: PLW1509 - it takes no lock


def _heed_interrupts() -> None:
    """Whoever runs the tests in the background ignores them, and so would a child."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def console(tenant):
    return Console(tenant.bootstrap)


def test_the_life_of_a_topic(console, tenant):
    assert console("topics", "list") == ""
    create = ("topics", "create", "orders", "--partitions", "2", "--replication-factor", "2")
    assert console(*create, "--validate-only") == "orders could be created.\n"
    assert console(*create, "--config", "retention.ms=86400000") == "orders created.\n"
    console(*create, status=1)
    assert "TOPIC_ALREADY_EXISTS" in console.err
    assert console(*create, "--if-not-exists") == "orders exists already.\n"
    assert console("topics", "list") == "orders\n"
    altered = console("topics", "alter", "orders", "--partitions", "3", "--config", "cleanup.policy=compact")
    assert altered == "orders configured.\norders has 3 partitions.\n"
    wait_for(lambda: "PartitionCount: 3" in console("topics", "describe", "orders"), 30, "the partitions")
    head, *rows = console("topics", "describe").splitlines()
    assert head.startswith("Topic: orders\tTopicId: ")
    assert head.endswith("ReplicationFactor: 2\tConfigs: cleanup.policy=compact,retention.ms=86400000")
    assert [row.split("\t")[1] for row in rows] == ["Partition: 0", "Partition: 1", "Partition: 2"]
    console("topics", "alter", "orders", "--delete-config", "retention.ms")
    wait_for(lambda: "retention.ms" not in console("topics", "describe", "orders"), 30, "the default")
    console("topics", "delete", "ghost", "orders", status=1)
    assert console.out == "orders deleted.\n"
    assert "deleting ghost" in console.err
    wait_for(lambda: console("topics", "list") == "", 30, "the deletion")


def test_lines_become_messages_and_messages_lines(console, tenant):
    create_topic(tenant, "orders", 2)
    lines = b"".join(b"k%d:v%d\n" % (n, n) for n in range(10)) + b"k0:gone"
    console(
        "produce", "orders", "--key-separator", ":", "--null", "gone", "--header", "from=us", "--partition", "1",
        lines=lines,
    )  # fmt: skip
    assert console.err == "11 messages delivered.\n"
    shown = ("--print-key", "--print-partition", "--print-offset", "--print-headers")
    out = console("consume", "orders", "--from-beginning", "--max-messages", "11", *shown).splitlines()
    assert out[3] == "Partition:1\tOffset:3\tfrom:us\tk3\tv3"
    assert out[10] == "Partition:1\tOffset:10\tfrom:us\tk0\tnull"
    assert console("consume", "orders", "--partition", "1", "--offset", "8", "--max-messages", "1") == "v8\n"
    out = console("consume", "orders", "--from-beginning", "--max-messages", "1", "--print-timestamp")
    assert out.startswith("CreateTime:1")


def test_a_group_goes_on_where_it_ended(console, tenant):
    create_topic(tenant, "orders")
    console("produce", "orders", lines=b"1\n2\n3\n4\n5\n")
    read = ("consume", "orders", "--group", "readers", "--from-beginning", "--max-messages")
    assert console(*read, "3") == "1\n2\n3\n"
    assert console(*read, "2") == "4\n5\n"
    console(*read, "1", "--idle", "1", status=1)
    assert "0 of 1 messages" in console.err


def test_without_from_beginning_it_shows_what_comes_from_now_on(console, tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"old"])
    reader = console.started("consume", "orders", "--max-messages", "1")
    try:
        wait_for(lambda: bool(produce(tenant, "orders", [b"new"])) and reader.poll() is not None, 30, "a message")
        out, _ = reader.communicate(timeout=10)
    finally:
        reader.kill()
        reader.wait()
    assert out == b"new\n"


def test_interrupting_it_ends_it_quietly(console, tenant):
    create_topic(tenant, "orders")
    console("produce", "orders", lines=b"1\n")
    reader = console.started("consume", "orders", "--from-beginning")
    try:
        assert reader.stdout.readline() == b"1\n"
        reader.send_signal(2)
        _, err = reader.communicate(timeout=20)
    finally:
        reader.kill()
        reader.wait()
    assert (reader.returncode, err) == (130, b"1 messages.\n")


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("topics", "create", "a b"), 1, "TOPIC_EXCEPTION"),
        (("topics", "create", "t", "--config", "no.such=1"), 1, "no.such"),
        (("topics", "create", "t", "--config", "nonsense"), 2, "NAME=VALUE"),
        (("topics", "create", "t", "--partitions", "0"), 2, "at least 1"),
        (("topics", "create", "t", "--replication-factor", "9"), 1, "3 brokers"),
        (("topics", "describe", "ghost"), 1, "ghost"),
        (("topics", "alter", "ghost", "--partitions", "3"), 1, "ghost"),
        (("topics", "alter", "ghost"), 2, "nothing to alter"),
        (("topics",), 2, "ACTION"),
        ((), 2, "COMMAND"),
        (("consume", "ghost"), 1, "ghost"),
        (("consume", "ghost", "--offset", "7"), 2, "--partition"),
        (("consume", "ghost", "--group", "g", "--offset", "end"), 2, "--group"),
        (("--property", "no.such.property=1", "topics", "list"), 2, "no.such.property"),
        (("--command-config", "/no/such/file", "topics", "list"), 2, "/no/such/file"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_a_status(console, words, status, sentence):
    console(*words, status=status)
    assert sentence in console.err


def test_input_that_holds_no_key_ends_it_after_what_came_before(console, tenant):
    create_topic(tenant, "orders")
    console("produce", "orders", "--key-separator", "=", lines=b"a=1\nb\nc=3\n", status=1)
    assert "1 messages delivered" in console.err
    assert "line 2" in console.err
    assert read_all(tenant, "orders") == {0: [b"1"]}


def test_messages_that_are_refused_are_counted(console, tenant):
    create_topic(tenant, "orders", max_message_bytes="100")
    console("produce", "orders", lines=b"x" * 1000 + b"\n", status=1)
    assert "1 messages were not delivered" in console.err
    console("produce", "ghost", lines=b"x\n", status=1)
    assert "UNKNOWN_TOPIC" in console.err


def test_a_cluster_that_is_not_there_is_said_to_be_so():
    nobody = Console(f"127.0.0.1:{free_port()}")
    for words in (("topics", "list"), ("topics", "delete", "t"), ("consume", "t"), ("produce", "t")):
        nobody("--timeout", "1", *words, lines=b"x\n", status=3)
        assert "cannot be reached" in nobody.err


def test_everything_has_help():
    console = Console("nowhere:1")
    for words in ((), ("topics",), ("topics", "create"), ("topics", "alter"), ("produce",), ("consume",)):
        assert "--help" in console(*words, "--help")
