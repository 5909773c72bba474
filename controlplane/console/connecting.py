"""The connection guide of an instance's route: what to paste into a client, with a topic that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.console.snippets import ANY_TOPIC, snippets
from controlplane.core.errors import SluiceError
from controlplane.kafka import groups
from quota.contracts.instance import ClientCertificates

if TYPE_CHECKING:
    from controlplane.instances import models
    from quota.contracts.instance import Route

_INTERNAL = "__"


def guide(instance: models.Instance, route: Route | models.Route, bootstrap: str) -> dict[str, Any]:
    """What its part of a page shows: `snippets` for each client, none where the route has no address yet; `lacks_topic`."""
    if not bootstrap:
        return {"snippets": [], "lacks_topic": False}
    shows = route.client_certificates == ClientCertificates.REQUIRED
    topic, lacks_topic = _a_topic(instance)
    found = snippets(bootstrap, topic, security=route.security, mechanisms=route.mechanisms, shows=shows)
    return {"snippets": found, "lacks_topic": lacks_topic}


def _a_topic(instance: models.Instance) -> tuple[str, bool]:
    """The first by name; where there is none, which is said, or nobody can say, a name to be replaced."""
    try:
        names = groups.topic_names(instance.cluster.address, instance.id)
    except SluiceError:
        return ANY_TOPIC, False
    first = min((name for name in names if not name.startswith(_INTERNAL)), default="")
    return first or ANY_TOPIC, not first
