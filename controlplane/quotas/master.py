"""The door to the active master's read API: plain HTTP, found through ZooKeeper, bounded to a second or two."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from controlplane.clusters import coordination, zookeeper
from controlplane.core.errors import MasterUnavailable

TIMEOUT_S = 2.0
MOST_BYTES = 4 * 2**20

# The master stands in the same network: a proxy of the environment is for the way out.
_opener = build_opener(ProxyHandler({}))


def allocation(instance_id: str) -> dict[str, Any]:
    """The master's document for one instance. Raises MasterUnavailable, also while it has not heard of the instance."""
    master = coordination.master(zookeeper.tree())
    if master is None:
        raise MasterUnavailable("no flow master is active")
    request = Request(f"{master.http}/v1/instances/{instance_id}/allocation", headers={"Accept": "application/json"})  # noqa: S310  # the master's own address, from ZooKeeper
    try:
        with _opener.open(request, timeout=TIMEOUT_S) as response:
            document = json.loads(response.read(MOST_BYTES))
    except HTTPError as error:
        error.close()
        if error.code == 404:
            raise MasterUnavailable("no broker has reported on this instance yet", code="allocation_unknown") from error
        raise MasterUnavailable(f"the flow master answers {error.code}") from error
    except (OSError, ValueError, HTTPException) as error:
        raise MasterUnavailable("the flow master does not answer") from error
    if not isinstance(document, dict):
        raise MasterUnavailable("the flow master's answer is not legible")
    return document
