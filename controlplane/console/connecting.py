"""The connection guide of an instance's route: what to paste into a client, with a topic that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.console.snippets import ANY_TOPIC, snippets
from controlplane.core.errors import SluiceError
from controlplane.kafka import groups
from quota.contracts.instance import ClientCertificates

if TYPE_CHECKING:
    from controlplane.console.snippets import Snippet
    from controlplane.instances import models
    from quota.contracts.instance import Route

_INTERNAL = "__"


def guide(instance: models.Instance, route: Route | models.Route, bootstrap: str) -> list[Snippet]:
    """For each client; nothing where the route has no address yet."""
    if not bootstrap:
        return []
    shows = route.client_certificates == ClientCertificates.REQUIRED
    topic = _a_topic(instance)
    return snippets(bootstrap, topic, security=route.security, mechanisms=route.mechanisms, shows=shows)


def _a_topic(instance: models.Instance) -> str:
    """The first by name; where there is none, or nobody can say, a name to be replaced."""
    try:
        names = groups.topic_names(instance.cluster.address, instance.id)
    except SluiceError:
        return ANY_TOPIC
    return min((name for name in names if not name.startswith(_INTERNAL)), default=ANY_TOPIC)
