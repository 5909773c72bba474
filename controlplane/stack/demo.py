"""The demo tenants: two organisations, each with an API key, one running instance and one topic.

The organisation and its key are made inside (there is no public way to sign up); everything after that goes over the
REST API with the tenant's own key, as any tenant would do it. Every step first looks for what it would make, so it can
be repeated after any interruption. What was found or made is written to demo.json, keys to secrets.json.
"""

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from controlplane.stack.layout import Layout
from controlplane.stack.report import DEMO_TOPIC

RUNNING_WITHIN_S = 90.0
POLL_S = 0.2
INSTANCE_NAME = "demo"


@dataclass(frozen=True, slots=True)
class DemoTenant:
    """What one demo tenant buys."""

    name: str
    bandwidth_mib_per_s: int


TENANTS = (DemoTenant("Harbour", 5), DemoTenant("Orchard", 20))


class DemoError(Exception):
    """The API refused, or an instance did not come up; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Api:
    """The REST API as one tenant sees it."""

    url: str
    key: str

    def call(self, method: str, path: str, body: object = None, *, accept: tuple[int, ...] = ()) -> dict[str, Any]:
        """The JSON answer. Statuses of 400 and above raise DemoError, unless they are in `accept`."""
        request = urllib.request.Request(  # noqa: S310 - our own http URL
            f"{self.url}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return dict(json.load(answer))
        except urllib.error.HTTPError as refusal:
            if refusal.code in accept:
                return {}
            text = refusal.read().decode(errors="replace")
            raise DemoError(f"{method} {path} answered {refusal.code}: {text[:500]}") from refusal


def ensure_instance(api: Api, tenant: DemoTenant) -> dict[str, Any]:
    """The tenant's running instance with its topic: {"id", "bootstrap"}."""
    items = api.call("GET", "/instances")["items"]
    found = next((item["id"] for item in items if item["name"] == INSTANCE_NAME), None)
    if found is None:
        wanted = {
            "name": INSTANCE_NAME,
            "bandwidth_mib_per_s": tenant.bandwidth_mib_per_s,
            "storage_gib": 10,
            "partitions": 300,
            "whitelist": ["127.0.0.1/32"],
        }
        found = api.call("POST", "/instances", wanted)["id"]
    instance = _running(api, found)
    topic = {"name": DEMO_TOPIC, "partitions": 3, "replication_factor": 3, "config": {}}
    if api.call("GET", f"/instances/{found}/topics/{DEMO_TOPIC}", accept=(404,)) == {}:
        api.call("POST", f"/instances/{found}/topics", topic, accept=(409,))
    return {"id": found, "bootstrap": instance["bootstrap"]}


def _running(api: Api, instance_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + RUNNING_WITHIN_S
    while True:
        instance = api.call("GET", f"/instances/{instance_id}")
        if instance["state"] == "running":
            return instance
        if time.monotonic() > deadline:
            raise DemoError(f"instance {instance_id} is {instance['state']} after {RUNNING_WITHIN_S:.0f} s")
        time.sleep(POLL_S)


def ensure_all(layout: Layout, keys: dict[str, str]) -> list[dict[str, Any]]:
    """Every demo tenant, in the order of TENANTS; `keys` holds their API keys by name."""
    return [
        {"name": tenant.name, "instances": [ensure_instance(Api(layout.url, keys[tenant.name]), tenant)]}
        for tenant in TENANTS
    ]
