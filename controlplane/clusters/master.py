"""The door to the flow masters' read API: HTTP with this process's credential or, over TLS, its certificate; a second or two.

A cluster's active master is found through the cluster's ZooKeeper: hence the address that each question begins with.
"""

from __future__ import annotations

import functools
import json
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import (
    BaseHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from django.conf import settings

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.identification import context_of, material
from controlplane.core import dry_runs
from controlplane.core.errors import ClusterUnavailable, MasterUnavailable, Unavailable
from quota.contracts.addresses import checked_http
from quota.contracts.identity import CONTROL_PLANE
from quota.contracts.instance import ContractError
from quota.contracts.internal_security import InternalSecurity
from quota.contracts.loop_time import times_of
from quota.tls.material import Material

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from quota.contracts.loop_time import LoopWindow

TIMEOUT_S = 2.0
MOST_BYTES = 16 * 2**20


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object) -> None:
        """Answered as what it is: not 200."""


@functools.lru_cache(maxsize=2)
def _opener(found: Material | None) -> OpenerDirector:
    # The master stands in the same network: a proxy of the environment is for the way out.
    # A redirection would take the credential elsewhere.
    handlers: list[BaseHandler] = [ProxyHandler({}), _NoRedirection()]
    if found is not None:
        handlers.append(HTTPSHandler(context=context_of(found)))
    return build_opener(*handlers)


def allocation(cluster: ClusterAddress, instance_id: str) -> dict[str, Any]:
    """The document of one instance. Raises MasterUnavailable, also while the master has not heard of the instance."""
    return _ask(cluster, f"/v1/instances/{instance_id}/allocation")


def short(cluster: ClusterAddress, instance_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Limit, flow and branch per direction of these instances, as far as they are known. Raises MasterUnavailable.

    Each has `learning` True while the master has not heard of every broker, or hears of none: it says 0 of what it does not know.
    """
    if not instance_ids:
        return []
    document = _ask(cluster, f"/v1/instances/{','.join(instance_ids)}")
    items = _items(document, "instances")
    knows_all = not document.get("learning") and document.get("brokers") != []
    return items if knows_all else [{**item, "learning": True} for item in items]


def storage_used_bytes(cluster: ClusterAddress, instance_id: str) -> int | None:
    """Bytes on disk of one instance, every replica counted; None where it is not known."""
    try:
        documents = {document["instance"]: document for document in short(cluster, [instance_id])}
    except Unavailable:
        return None
    used = documents.get(instance_id, {}).get("storage_used_bytes")
    return used if isinstance(used, int) else None


def allocations(cluster: ClusterAddress, instance_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The documents of these instances, as far as they are known. Raises MasterUnavailable."""
    path = f"/v1/instances/{','.join(instance_ids)}/allocations"
    return _items(_ask(cluster, path), "instances") if instance_ids else []


class Window(NamedTuple):
    """What brokers said of requests in one window."""

    until: Mapping[
        int, int
    ]  # by registered broker: it has told all of windows that began before this second; 0: nobody knows
    texts: Mapping[str, Sequence[str]]  # by instance: one of each broker that had requests in it
    brokers: Mapping[str, Sequence[int]] = {}  # whose these are; of an instance that is left out nobody knows it


def requests(cluster: ClusterAddress, instance_ids: Sequence[str], at: int) -> Window:
    """Requests of these instances in the window that began at this second. Raises MasterUnavailable.

    Also while the master has not heard of every broker: what it would leave out would never be asked for again.
    """
    document = _ask(cluster, f"/v1/instances/{','.join(instance_ids)}/requests/{at}")
    if document.get("learning") or not document.get("until"):
        raise MasterUnavailable("no broker has reported on this instance yet", code="allocation_unknown")
    items = _items(document, "instances")
    try:
        until = {int(broker): int(moment or 0) for broker, moment in document["until"].items()}
        brokers = {item["instance"]: [int(each) for each in item["brokers"]] for item in items if "brokers" in item}
        return Window(until, {item["instance"]: item["texts"] for item in items}, brokers)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MasterUnavailable("the flow master's answer is not legible") from error


def loop_times(cluster: ClusterAddress, broker: int, at: int) -> dict[int, LoopWindow]:
    """How a broker's loop spent its time in the minute that began at this second. Raises MasterUnavailable.

    Of a master of an earlier release, which does not know the question, as well.
    """
    document = _ask(cluster, f"/v1/loop-times/{broker}/{at}")
    try:
        return times_of(document["times"])
    except (KeyError, TypeError, ValueError, AttributeError, ContractError) as error:
        raise MasterUnavailable("the flow master's answer is not legible") from error


def throttled(http: str, position: int) -> tuple[list[dict[str, Any]], int]:
    """What one master's journal holds from a position on, and where to go on. Raises MasterUnavailable."""
    return _page(http, f"/v1/throttled/{position}", "intervals")


def elastic(http: str, position: int) -> tuple[list[dict[str, Any]], int]:
    """What one master's journal of elastic bandwidth holds from a position on, and where to go on. Raises MasterUnavailable."""
    return _page(http, f"/v1/elastic/{position}", "uses")


def _page(http: str, path: str, name: str) -> tuple[list[dict[str, Any]], int]:
    document = _get(http, path)
    following = document.get("next")
    if not isinstance(following, int):
        raise MasterUnavailable("the flow master's answer is not legible")
    return _items(document, name), following


def brokers(cluster: ClusterAddress) -> list[dict[str, Any]]:
    """Leaders, flow and allocations of every broker, over all instances. Raises MasterUnavailable."""
    return _items(_ask(cluster, "/v1/brokers"), "brokers")


def _items(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = document.get(name)
    if not isinstance(items, list):
        raise MasterUnavailable("the flow master's answer is not legible")
    return items


def _ask(cluster: ClusterAddress, path: str) -> dict[str, Any]:
    return dry_runs.once(("master", cluster, path), lambda: _get(_active(cluster), path))


def _active(cluster: ClusterAddress) -> str:
    master = coordination.master(zookeeper.tree(cluster))
    if master is None:
        raise MasterUnavailable("no flow master is active")
    return master.http


def _get(http: str, path: str) -> dict[str, Any]:
    try:
        base = checked_http(http)
    except ContractError as error:
        raise MasterUnavailable("the flow master's address is not one") from error
    headers = {"Accept": "application/json"}
    try:
        found = material()
    except ClusterUnavailable as error:
        raise MasterUnavailable(str(error)) from error
    if not base.startswith("https://"):
        if settings.ENVIRONMENT.cluster_security is InternalSecurity.SSL:
            raise MasterUnavailable("the flow master speaks no TLS, and SLUICE_CLUSTER_SECURITY is ssl")
        bearer = settings.ENVIRONMENT.keys().bearer(CONTROL_PLANE)
        if bearer is not None:
            headers["Authorization"] = bearer
    elif found is None:
        raise MasterUnavailable("the flow master speaks TLS, and this process has no certificate for the cluster")
    request = Request(f"{base}{path}", headers=headers)  # noqa: S310  # http or https: checked above
    try:
        with _opener(found).open(request, timeout=TIMEOUT_S) as response:
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
