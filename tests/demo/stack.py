"""What the demo knows of the running stack: `stack.json`, the REST API with a tenant's key, and raw connections."""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.discovery import ApiVersionsRequest


class DemoError(Exception):
    """The demo cannot go on, or saw what must not be; the text says what."""


@dataclass(frozen=True)
class Tenant:
    """One tenant and its instance."""

    name: str
    api: str
    api_key: str
    instance: str
    bootstrap: str

    def call(self, method: str, path: str, body: object = None, *, accept: tuple[int, ...] = ()) -> dict[str, Any]:
        """The JSON answer to a request below the instance."""
        request = urllib.request.Request(
            f"{self.api}/instances/{self.instance}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return dict(json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as refusal:
            if refusal.code in accept:
                return {}
            raise DemoError(f"{method} {path}: {refusal.code} {refusal.read()[:300]!r}") from refusal

    def fresh_topic(self, name: str, partitions: int, **config: str) -> None:
        """The topic, empty: one of an earlier run is deleted first."""
        if self.call("GET", f"/topics/{name}", accept=(404,)):
            self.call("DELETE", f"/topics/{name}")
            wait_for(lambda: not self.call("GET", f"/topics/{name}", accept=(404,)), 30, f"{name} to be deleted")
        body = {"name": name, "partitions": partitions, "replication_factor": 3, "config": config}
        self.call("POST", "/topics", body)
        wait_for(lambda: self.in_sync(name) == partitions, 30, f"{name} to have all its replicas")

    def in_sync(self, topic: str) -> int:
        """How many partitions have a leader and three replicas in sync."""
        found = self.call("GET", f"/topics/{topic}", accept=(404, 503))
        return sum(p["leader"] is not None and len(p["isr"]) == 3 for p in found.get("partition_details", ()))

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader by partition."""
        return {p["partition"]: p["leader"] for p in self.call("GET", f"/topics/{topic}")["partition_details"]}


class Stack:
    """The running stack, read anew where it changes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        if not file.exists():
            raise DemoError(f"{file} is not there: run `make up` in another terminal first")
        self.tenants = [self._tenant(tenant) for tenant in self.read()["tenants"]]

    def read(self) -> dict[str, Any]:
        """The file as it is now: process ids change when a broker is started again."""
        return dict(json.loads(self.file.read_text()))

    def _tenant(self, document: dict[str, Any]) -> Tenant:
        instance = document["instances"][0]
        return Tenant(document["name"], self.read()["api"], document["api_key"], instance["id"], instance["bootstrap"])

    def broker_pid(self, broker: int) -> int | None:
        """The process of a broker; None while it is being started again."""
        return next(b["pid"] for b in self.read()["brokers"] if b["id"] == broker)

    @property
    def brokers(self) -> list[int]:
        """Ids."""
        return [broker["id"] for broker in self.read()["brokers"]]


def stack_file() -> Path:
    """Where the stack says what runs: SLUICE_STACK, or the default stack's."""
    return Path(os.environ.get("SLUICE_STACK", "var/stack.json"))


def wait_for(condition: Any, seconds: float, what: str) -> float:
    """Wait until a condition holds; how long it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise DemoError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)
    return time.monotonic() - began


def answers(address: tuple[str, int], source: str, sock: socket.socket | None = None) -> bool:
    """Whether a broker answers ApiVersions on a connection from `source`. False: it closes the connection."""
    request = encode_request(APIS[ApiKey.API_VERSIONS], 0, 1, "demo", ApiVersionsRequest())
    try:
        sock = sock or socket.create_connection(address, timeout=5, source_address=(source, 0))
        sock.sendall(request)
        return len(sock.recv(4)) == 4
    except ConnectionError:
        return False


def first_address(bootstrap: str) -> tuple[str, int]:
    """The first host and port of a bootstrap list."""
    host, _, port = bootstrap.split(",", maxsplit=1)[0].rpartition(":")
    return host, int(port)
