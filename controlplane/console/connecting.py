"""The connection guide of an instance's route: what to paste into a client, with a topic that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.snippets.selectors import a_topic, programs_of

if TYPE_CHECKING:
    from controlplane.instances import models
    from quota.contracts.instance import Route


def guide(instance: models.Instance, route: Route | models.Route, bootstrap: str) -> dict[str, Any]:
    """What its part of a page shows: `snippets` for each client, none where the route has no address yet; `lacks_topic`."""
    if not bootstrap:
        return {"snippets": [], "lacks_topic": False}
    topic, lacks_topic = a_topic(instance)
    return {"snippets": programs_of(route, bootstrap, topic), "lacks_topic": lacks_topic}
