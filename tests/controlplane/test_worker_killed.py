"""A real worker and beat, a real Redis and ZooKeeper: the worker is killed in mid-operation, and another one finishes.

Brokers are played by this test, which applies specs when it chooses to, so that the kill falls into a known step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from controlplane.clusters.zookeeper import Create, KazooTree, Put
from controlplane.env import ROOT
from controlplane.stack.process import dies_with_parent
from quota.contracts.applied import Applied, AppliedInstance
from quota.contracts.instance import APPLIED_PATH, INSTANCES_PATH, InstanceSpec
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.support.ports import free_port
from tests.support.processes import SECRET, secrets_file
from tests.support.redis import RedisServer
from tests.support.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

LEASE_S = 3
CREATE = """
from controlplane.accounts.joining import demo_tenant_ensure
from controlplane.instances.services import instance_create
organisation, _ = demo_tenant_ensure(name="demo")
_, operation = instance_create(organisation=organisation, actor="test", name="n", bandwidth_mib_per_s=5,
                               storage_gib=1, partitions=9, whitelist=["127.0.0.1"])
print("operation", operation.id)
"""
SHOW = """
import json
from controlplane.core.models import Operation
operation = Operation.objects.unscoped("a test").get()
print("row", json.dumps([operation.state, operation.steps, operation.error]))
"""


class Stack:
    """The control plane's processes around one folder."""

    def __init__(self, folder: Path, zookeeper: ZooKeeperServer, redis: RedisServer) -> None:
        self.folder = folder
        secrets_file(folder)
        self.environment = {
            **os.environ,
            "SLUICE_STACK_DIR": str(folder),
            "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
            "REDIS_URL": redis.url,
            "ZOOKEEPER_HOSTS": zookeeper.hosts,
            "SLUICE_LEASE_S": str(LEASE_S),
            "SLUICE_WORKERS": "1",
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def celery(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{arguments[0]}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "controlplane", *arguments, "--loglevel=INFO"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509  # it only calls prctl
            )
        self.processes.append(process)
        return process

    def operation(self) -> tuple[str, list[dict[str, str]], str]:
        line = next(line for line in self.manage("shell", "-c", SHOW).splitlines() if line.startswith("row "))
        return tuple(json.loads(line.removeprefix("row ")))

    def logs(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with (
        RedisServer(tmp_path / "redis", free_port()) as redis,
        ZooKeeperServer(tmp_path / "zookeeper", free_port()) as zookeeper,
    ):
        stack = Stack(tmp_path, zookeeper, redis)
        try:
            yield stack
        finally:
            stack.stop()


def wait_for(what: Callable[[], Any], stack: Stack, within_s: float = 60) -> Any:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError(f"not in {within_s} s\n{stack.logs()}")


def test_an_operation_is_finished_by_another_worker_after_sigkill(stack: Stack) -> None:
    stack.manage("migrate", "--verbosity=0")
    tree = KazooTree(stack.environment["ZOOKEEPER_HOSTS"], access_by_secret((SECRET,), Party.OPERATORS))
    tree.wait_connected(20)
    try:
        for path in ("/brokers/ids", APPLIED_PATH, INSTANCES_PATH):
            tree.ensure(path)
        tree.write([Create("/brokers/ids/1", b'{"host": "127.0.0.1", "port": 19001, "endpoints": []}')])
        stack.celery("beat")
        first = stack.celery("worker")
        stack.manage("shell", "-c", CREATE)
        (name,) = wait_for(lambda: tree.children(INSTANCES_PATH), stack)
        wait_for(lambda: stack.operation()[1][2]["state"] == "running", stack)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()

        data, _ = tree.get(f"{INSTANCES_PATH}/{name}")
        generation = InstanceSpec.from_json(data).generation
        applied = Applied(boot="b", instances={name: AppliedInstance(generation)})
        tree.write([Create(f"{APPLIED_PATH}/1", applied.to_json())])
        assert stack.operation()[0] == "running", "nobody is left who could finish it"

        stack.celery("worker")
        state, steps, error = wait_for(lambda: (row := stack.operation())[0] != "running" and row, stack)
        assert (state, error) == ("succeeded", "")
        assert [step["state"] for step in steps] == ["succeeded"] * 4
        assert InstanceSpec.from_json(tree.get(f"{INSTANCES_PATH}/{name}")[0]).generation == generation

        # The reconciler of the second worker brings back what is lost.
        _, version = tree.get(f"{INSTANCES_PATH}/{name}")
        tree.write([Put(f"{INSTANCES_PATH}/{name}", b"{", version)])
        wait_for(lambda: tree.get(f"{INSTANCES_PATH}/{name}")[0] == data, stack)
    finally:
        tree.close()
