"""`up` as a process of its own: with the real ZooKeeper and Redis, and a stand-in for the rest of the plan."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from redis import Redis

from controlplane.stack.layout import PROJECT, Layout
from quota.zookeeper.client import Client
from tests.stack.programs import eventually, is_alive
from tests.support.ports import free_block
from tests.support.waiting import promised
from tests.support.zookeeper import operator

pytestmark = pytest.mark.integration

# The plan's stores, and one listener where the console would be.
UP = """
import sys
from pathlib import Path
from controlplane.stack import plan, run
from tests.stack.programs import listening
plan.programs = lambda layout, stores: (
    *plan._stores(layout, stores),
    listening("web", layout.base, tier=2, needs=tuple(sorted(stores.own))),
)
sys.exit(run.run(int(sys.argv[1]), Path(sys.argv[2])))
"""


class Up:
    """One `up` under test."""

    def __init__(self, layout: Layout, **environment: str) -> None:
        theirs = ("ZOOKEEPER_HOSTS", "REDIS_URL", "DATABASE_URL")
        kept = {name: value for name, value in os.environ.items() if name not in theirs}
        self.layout = layout
        self.output = layout.directory / f"up-{time.monotonic_ns()}.txt"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", UP, str(layout.base), str(layout.directory)],
                cwd=PROJECT,
                env=kept | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self.output.read_text()

    def wait_until_up(self) -> dict:
        eventually(lambda: self.layout.stack_file.exists() or self.process.poll() is not None, 30)
        assert self.process.poll() is None, self.text
        return json.loads(self.layout.stack_file.read_text())

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


@pytest.fixture
def layout(tmp_path):
    return Layout.of(free_block(100), tmp_path)


@pytest.fixture
def up(layout):
    started: list[Up] = []

    def start(at: Layout = layout, **environment: str) -> Up:
        started.append(Up(at, **environment))
        return started[-1]

    yield start
    for one in started:
        one.close()


def _operator(layout: Layout, document: dict) -> Client:
    return operator(document["zookeeper"], json.loads(layout.secrets_file.read_text())["cluster_secret"])


def test_ctrl_c_stops_everything_and_a_second_start_finds_the_data(up, layout):
    first = up()
    document = first.wait_until_up()
    client = _operator(layout, document)
    client.start()
    client.create("/consumers/kept", b"in ZooKeeper", makepath=True)
    client.stop()
    client.close()
    with Redis(port=layout.redis_port) as redis:
        redis.set("kept", "in Redis")
    pids = document["processes"].values()
    assert first.interrupt() == 0
    assert not any(is_alive(pid) for pid in pids)
    assert not layout.stack_file.exists()

    began = time.monotonic()
    document = up().wait_until_up()
    assert time.monotonic() - began < promised(10)
    client = _operator(layout, document)
    client.start()
    assert client.get("/consumers/kept")[0] == b"in ZooKeeper"
    client.stop()
    client.close()
    with Redis(port=layout.redis_port) as redis:
        assert redis.get("kept") == b"in Redis"


def test_a_taken_port_is_one_sentence_and_nothing_is_left_running(up, layout):
    with socket.create_server(("127.0.0.1", layout.redis_port)):
        refused = up()
        assert refused.process.wait(30) == 1
    assert refused.text.startswith(f"sluice: port {layout.redis_port}, which Redis needs, is taken by another program")
    assert refused.text.count("\n") == 1
    assert not layout.stack_file.exists()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", layout.zookeeper_port))


def test_a_second_up_on_the_same_folder_is_one_sentence_and_leaves_the_first_alone(up, layout):
    first = up()
    pids = first.wait_until_up()["processes"].values()
    second = up()
    assert second.process.wait(30) == 1
    assert f"another `make up` (process {first.process.pid}) runs in" in second.text
    assert all(is_alive(pid) for pid in pids)
    assert layout.stack_file.exists()


def test_two_stacks_run_side_by_side(up, layout, tmp_path):
    other = Layout.of(free_block(100), tmp_path / "other")
    other.directory.mkdir()
    one, two = up(), up(other)
    pids = {*one.wait_until_up()["processes"].values(), *two.wait_until_up()["processes"].values()}
    assert len(pids) == 8
    assert one.interrupt() == 0
    assert is_alive(two.wait_until_up()["processes"]["web"])


def test_after_a_killed_supervisor_the_next_start_recovers(up, layout):
    first = up()
    pids = first.wait_until_up()["processes"].values()
    first.process.kill()
    first.process.wait()
    assert layout.stack_file.exists()  # it had no chance to remove it
    again = up()
    eventually(lambda: not any(is_alive(pid) for pid in pids), 60)
    eventually(lambda: "Sluice is up" in again.text or again.process.poll() is not None, 30)
    document = again.wait_until_up()
    assert set(document["processes"].values()).isdisjoint(pids)


def test_a_killed_server_comes_back_under_a_new_pid_in_the_stack_file(up, layout):
    running = up()
    before = running.wait_until_up()["processes"]
    os.kill(before["redis"], signal.SIGKILL)
    eventually(
        lambda: json.loads(layout.stack_file.read_text())["processes"].get("redis") not in (None, before["redis"])
    )
    after = json.loads(layout.stack_file.read_text())["processes"]
    assert {name: pid for name, pid in after.items() if name != "redis"} == {
        name: pid for name, pid in before.items() if name != "redis"
    }
    assert f"redis (process {before['redis']}) was killed by SIGKILL: starting it again" in running.text


def test_a_server_that_cannot_start_is_one_sentence_with_its_log_and_the_rest_is_stopped(up, layout):
    (layout.directory / "redis").mkdir()
    (layout.directory / "redis" / "appendonly.aof").write_bytes(b"no commands at all\n" * 9)
    (layout.directory / "redis" / "appendonlydir").write_text("nor a folder")  # where newer versions keep it
    failed = up()
    assert failed.process.wait(30) == 1
    assert "sluice: redis ended with status 1 before it was ready. The end of" in failed.text
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", layout.zookeeper_port))


def test_a_users_own_zookeeper_and_redis_are_not_started(up, layout):
    document = up(ZOOKEEPER_HOSTS="zk:2181/here", REDIS_URL="redis://elsewhere:6379/0").wait_until_up()
    assert set(document["processes"]) == {"supervisor", "web"}
    assert document["zookeeper"] == "zk:2181/here"
    assert not Path(layout.directory / "zookeeper").exists()
