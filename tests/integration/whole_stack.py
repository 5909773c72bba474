"""`manage.py up` in a folder and a port range of its own, and its REST API as a tenant uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.stack.config import Stores, process_environment
from controlplane.stack.layout import PROJECT, Layout
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_WITHIN_S = 90
_OTHERS_STORES = ("ZOOKEEPER_HOSTS", "REDIS_URL", "DATABASE_URL", "SPARK_MASTER")
_SETTINGS = {
    "SLUICE_LEASE_S": "3",
    "SLUICE_METERING_ABSENT": "this stack is for tests of the rest",
    "SLUICE_DELETION_GRACE_S": "60",
}


_OPERATORS_KEY = """
from controlplane.accounts import services
from controlplane.accounts.models import User
from controlplane.tenants.models import Membership
admin = Membership.objects.select_related("organisation").filter(user=User.objects.get(is_staff=True)).first()
print(services.api_key_create(organisation=admin.organisation, user=admin.user, name="operator")[1])
"""


@dataclass(frozen=True)
class Bought:
    """An instance as `tests.integration.clients` wants a tenant."""

    id: str
    bootstrap: str


class WholeStack:
    """Starts, stops, and says what runs."""

    def __init__(self, folder: Path, base: int, clusters: int = 1) -> None:
        self.layout = Layout.of(base, folder / "stack", clusters)
        self._output = folder / "up.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Seconds until everything answers."""
        environment = {name: value for name, value in os.environ.items() if name not in _OTHERS_STORES}
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "manage.py",
                    "up",
                    f"--port={self.layout.base}",
                    f"--directory={self.layout.directory}",
                    f"--clusters={self.layout.clusters}",
                ],
                cwd=PROJECT,
                env=environment | _SETTINGS,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return wait_for(self._is_up, START_WITHIN_S * self.layout.clusters, "the stack")

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"`up` has ended:\n{self._output.read_text()[-3000:]}"
        return self.layout.stack_file.exists()

    def stop(self) -> int:
        """As ctrl-C does; the exit status."""
        if self._process is None or self._process.poll() is not None:
            return 0
        self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its warden ends the rest
            self._process.wait(10)
            raise

    def document(self) -> dict[str, Any]:
        return dict(json.loads(self.layout.stack_file.read_text()))

    def pid(self, process: str) -> int | None:
        return self.document()["processes"].get(process)

    def operator(self) -> Api:
        """The REST API with a key of the administrator's, who is an operator of the service."""
        environment = process_environment(self.layout, Stores.of(self.layout, {}), os.environ) | _SETTINGS
        command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", _OPERATORS_KEY]
        made = subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True)
        return Api(self.document()["api"], made.stdout.split()[-1])

    def api(self, tenant: int = 0) -> Api:
        """The REST API with a demo tenant's key."""
        document = self.document()
        return Api(document["api"], document["tenants"][tenant]["api_key"])


@dataclass(frozen=True)
class Api:
    """Calls with one tenant's key."""

    url: str
    key: str

    def call(self, method: str, path: str, body: object = None, *, expect: int = 200) -> Any:
        """The JSON answer; AssertionError for another status than expected."""
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                status, text = refusal.code, refusal.read()
        assert status == expect, f"{method} {path}: {status} {text[:500]!r}"
        return json.loads(text) if text else None

    def steps(self, operation: str, within_s: float = 60) -> Iterator[dict[str, Any]]:
        """The operation each time it looks different, until it has ended."""
        deadline, last = time.monotonic() + within_s, None
        while True:
            found = self.call("GET", f"/operations/{operation}")
            if found != last:
                yield found
                last = found
            if found["state"] not in ("pending", "running"):
                return
            assert time.monotonic() < deadline, f"the operation did not end: {found}"
            time.sleep(0.05)

    def finished(self, operation: str, within_s: float = 60) -> dict[str, Any]:
        """The operation at its end, which must be a success."""
        *_, last = self.steps(operation, within_s)
        assert last["state"] == "succeeded", last
        return last

    def create(self, name: str, **members: Any) -> tuple[str, str]:
        """A new instance: its id, and the operation's."""
        body = {
            "name": name,
            "bandwidth_mib_per_s": 20,
            "storage_gib": 1,
            "partitions": 30,
            "whitelist": ["127.0.0.1/32"],
            **members,
        }
        answer = self.call("POST", "/instances", body, expect=202)
        return answer["id"], answer["operation_id"]

    def running(self, name: str, **members: Any) -> Bought:
        """A new instance that can be used."""
        instance, operation = self.create(name, **members)
        self.finished(operation)
        return Bought(instance, self.call("GET", f"/instances/{instance}")["bootstrap"])

    def topic(self, instance: Bought, name: str, partitions: int = 3, **config: str) -> dict[str, Any]:
        body = {"name": name, "partitions": partitions, "replication_factor": 3, "config": config}
        return dict(self.call("POST", f"/instances/{instance.id}/topics", body, expect=201))
