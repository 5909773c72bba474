"""Two masters as processes on a real ZooKeeper: one is active, and it is replaced when it dies."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.stack.zookeeper import TICK_MS
from quota.contracts.apart import nodes_of
from quota.contracts.change import Change
from quota.contracts.grant import Grants
from quota.contracts.identity import CONTROL_PLANE, Keys, credential
from quota.contracts.instance import CHANGES_PATH, INSTANCES_PATH, MASTER_EPOCH_PATH, MASTER_PATH
from quota.contracts.rows import Row
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from quota.wire import Decoder, Hello, frame
from tests.quota.samples import INSTANCE, flow, report, spec
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer, operator

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
SECRET = "only-for-this-test"
SESSION_MOST_MS = 20 * TICK_MS
"""A server of ZooKeeper gives no more."""


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), free_port()) as server:
        yield server


@pytest.fixture
def client(zookeeper, request):
    """A client below a chroot of this test's own."""
    client = operator(zookeeper.chroot(request.node.name), SECRET)
    client.start()
    yield client
    client.stop()
    client.close()


def asked(url):
    """A request as the control plane."""
    return urllib.request.Request(url, headers={"Authorization": Keys(SECRET).bearer(CONTROL_PLANE)})


class Process:
    """One `python -m quota`."""

    def __init__(self, number, zookeeper, chroot, directory, session_timeout_ms=2000):
        self.number = number
        self.report, self.http = free_port(), free_port()
        secrets = directory / "secrets.json"
        secrets.write_text(json.dumps({"cluster_secret": SECRET}))
        config = directory / f"master-{number}.toml"
        config.write_text(
            f'[master]\nid = {number}\nreport = "127.0.0.1:{self.report}"\nhttp = "127.0.0.1:{self.http}"\n'
            f'zookeeper = "{zookeeper}"\nchroot = "{chroot}"\nsecrets_file = "{secrets}"\n'
            f"session_timeout_ms = {session_timeout_ms}\nperiod_ms = 200\nlease_ms = 1000\n"
            f'data_dir = "{directory / f"data-{number}"}"\n'
        )
        self.log = directory / f"master-{number}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "quota", str(config)], cwd=ROOT, stderr=log)

    def get(self, path):
        """Status and document; None while nobody answers."""
        try:
            with urllib.request.urlopen(asked(f"http://127.0.0.1:{self.http}{path}"), timeout=5) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except OSError:
            return None, None

    def active(self):
        return self.get("/health")[0] == 200

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            os.kill(self.process.pid, number)
        return self.process.wait(20)


@pytest.fixture
def start(zookeeper, client, tmp_path):
    started = []

    def start(number, **options):
        started.append(Process(number, zookeeper.hosts, client.chroot, tmp_path, **options))
        return started[-1]

    yield start
    for process in started:
        process.stop(signal.SIGKILL)


def until(condition, timeout_s=30.0):
    deadline = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return result


def one_active(*masters):
    """The active one, once there is exactly one and every other knows it."""

    def look():
        answers = [master.get("/health") for master in masters]
        active = [master for master, (status, _) in zip(masters, answers, strict=True) if status == 200]
        others = [document for status, document in answers if status == 503]
        if len(active) != 1 or len(others) != len(masters) - 1:
            return None
        address = f"http://127.0.0.1:{active[0].http}"
        return active[0] if all(document["active"] == address for document in others) else None

    return until(look)


class BrokerConnection:
    """A broker's side of the report protocol, with plain sockets."""

    def __init__(self, master, broker):
        self.broker, self.sequence = broker, 0
        self.socket = socket.create_connection(("127.0.0.1", master.report), timeout=5)
        self.socket.sendall(frame(Hello(credential(SECRET, f"broker-{broker}"), broker).to_json()))
        self.decoder = Decoder()

    def ask(self, used=0, throttled_ms=0, rows=(), **facts):
        """The answer to a report, or None where the connection was closed."""
        self.sequence += 1
        row = flow(used, throttled_ms=throttled_ms)
        document = report(self.broker, row, sequence=self.sequence, period_ms=200, **facts)
        entry = document.instances[INSTANCE]
        document = replace(document, instances={**document.instances, **dict.fromkeys(rows, entry)})
        with contextlib.suppress(OSError):
            self.socket.sendall(frame(document.to_json()))
            while data := self.socket.recv(65536):
                for answer in self.decoder.feed(data):
                    return answer
        return None


@pytest.fixture
def connect():
    with contextlib.ExitStack() as stack:

        def connect(master, broker):
            connection = BrokerConnection(master, broker)
            stack.enter_context(connection.socket)
            return connection

        yield connect


def write_spec(client, document, change=""):
    client.ensure_path(CHANGES_PATH)
    for path, data in nodes_of(document).items():
        client.ensure_path(path)
        client.set(path, data)
    client.create(f"{CHANGES_PATH}/{change}", Change(document.id).to_json(), sequence=True)


def test_one_of_two_is_active_and_the_other_takes_over_when_it_is_killed(start, client):
    first, second = start(1), start(2)
    active = one_active(first, second)
    standby = second if active is first else first
    node = json.loads(client.get(MASTER_PATH)[0])
    assert node == {
        "id": active.number,
        "report": f"127.0.0.1:{active.report}",
        "http": f"http://127.0.0.1:{active.http}",
        "epoch": 1,
    }
    active.stop(signal.SIGKILL)
    until(standby.active)
    assert json.loads(client.get(MASTER_PATH)[0])["epoch"] == 2
    assert client.get(MASTER_EPOCH_PATH)[0] == b"2"
    assert standby.get("/health")[1]["epoch"] == 2


def test_a_master_that_is_asked_to_stop_exits_0_and_hands_over_at_once(start):
    first, second = (start(number, session_timeout_ms=SESSION_MOST_MS) for number in (1, 2))
    active = one_active(first, second)
    standby = second if active is first else first
    began = time.monotonic()
    assert active.stop(signal.SIGTERM) == 0
    until(standby.active)
    assert time.monotonic() - began < 0.8 * SESSION_MOST_MS / 1000  # whose session only ran out would be missed later
    assert standby.stop(signal.SIGINT) == 0
    assert "Traceback" not in standby.log.read_text()


def test_a_master_that_lost_its_session_grants_nothing_more_and_stands_by(start, client, connect):
    first = start(1)
    until(first.active)
    second = start(2)
    until(lambda: second.get("/health")[0] == 503)
    write_spec(client, spec())
    connection = connect(first, 1)
    assert connection.ask()["epoch"] == 1
    os.kill(first.process.pid, signal.SIGSTOP)
    until(second.active)
    os.kill(first.process.pid, signal.SIGCONT)
    assert one_active(first, second) is second
    assert connection.ask() is None
    assert "Traceback" not in first.log.read_text()


def test_a_mastership_survives_a_restart_of_zookeeper_or_is_won_again(start, client, zookeeper):
    first, second = start(1), start(2)
    one_active(first, second)
    zookeeper.restart()
    active = one_active(first, second)
    epoch = active.get("/health")[1]["epoch"]
    until(lambda: client.connected)
    assert client.retry(client.get, MASTER_EPOCH_PATH)[0] == str(epoch).encode()
    for master in (first, second):
        assert "Traceback" not in master.log.read_text()


def granted(document):
    return Grants.from_document(document).instances[INSTANCE]


def test_the_master_divides_what_the_spec_says_and_follows_its_changes(start, client, connect):
    master = start(1)
    write_spec(
        client, spec(produce=300), "change-"
    )  # whatever writers call their changes: none is taken for an older one
    until(lambda: master.active() and not master.get("/health")[1]["learning"])
    one, two = connect(master, 1), connect(master, 2)

    def allocations(used):
        two.ask()
        return [granted(connection.ask(use)).produce for connection, use in ((one, used), (two, 0))]

    until(lambda: [grant.allocation for grant in allocations(60)] == [300, 30])
    write_spec(client, spec(produce=600, storage=50, generation=2))
    until(lambda: [grant.allocation for grant in allocations(120)] == [600, 60])
    one.ask(storage=50)
    assert granted(two.ask()).produce.blocked == "storage"
    assert granted(two.ask()).consume.blocked is None
    status, document = master.get(f"/v1/instances/{INSTANCE}/allocation")
    assert (status, document["storage_used_bytes"], document["storage_full"]) == (200, 50, True)
    client.delete(f"{INSTANCES_PATH}/{INSTANCE}")
    client.create(f"{CHANGES_PATH}/", Change(INSTANCE).to_json(), sequence=True)
    until(lambda: two.ask()["instances"] == {})


def test_throttle_rules_are_read_from_their_own_node_and_with_those_who_have_none(start, client, connect):
    master = start(1)
    rule = ThrottleRule("rule-1", RuleKind.TOPIC, 90, None, topics=("orders",))
    write_spec(client, replace(spec(produce=300), rules=RuleSet(1, (rule,))))
    until(lambda: master.active() and not master.get("/health")[1]["learning"])
    row, connection = Row(INSTANCE, rule.id).key, connect(master, 1)

    def limits():
        return {name: grant[0][0] for name, grant in connection.ask(rows=[row])["instances"].items()}

    until(lambda: limits() == {INSTANCE: 300, row: 90})
    write_spec(client, replace(spec(produce=300), rules=RuleSet(2, (replace(rule, produce_bytes_per_s=60),))))
    until(lambda: limits() == {INSTANCE: 300, row: 60})


def test_throttled_intervals_survive_a_restart_and_another_master(start, client, connect):
    first, second = start(1), start(2)
    write_spec(client, spec(produce=300))
    active = one_active(first, second)
    until(lambda: not active.get("/health")[1]["learning"])
    connection = connect(active, 1)

    def kept(master):
        return master.get("/v1/throttled/0")[1]["intervals"]

    connection.ask(used=60, throttled_ms=150)
    until(lambda: kept(active))  # the pause that ends it has passed
    active.stop(signal.SIGKILL)
    standby = second if active is first else first
    until(standby.active)
    assert kept(standby) == []
    again = start(active.number)
    (interval,) = until(lambda: again.get("/health")[0] == 503 and kept(again))
    assert (interval["instance"], interval["epoch"], interval["throttled_ms"]) == (INSTANCE, 1, 150)
    assert interval["moment"]["brokers"][0][0] == 1


def test_a_spec_that_cannot_be_parsed_keeps_the_last_good_one_in_force(start, client):
    master = start(1)
    write_spec(client, spec(produce=300))
    until(lambda: master.get(f"/v1/instances/{INSTANCE}/allocation")[0] == 200)
    client.set(f"{INSTANCES_PATH}/{INSTANCE}", b"{broken")
    client.create(f"{CHANGES_PATH}/", b"what is this", sequence=True)
    until(lambda: "last good spec" in master.log.read_text())
    assert master.get(f"/v1/instances/{INSTANCE}/allocation")[1]["produce"]["limit"] == 300


def test_a_port_that_is_taken_is_one_clear_sentence_and_exit_code_1(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.quota.test_master_on_zookeeper.free_port", lambda: taken.getsockname()[1])
            master = start(1)
        assert master.process.wait(20) == 1
    text = master.log.read_text()
    assert "cannot listen" in text
    assert "Traceback" not in text
