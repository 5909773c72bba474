"""Reading topics, within an organisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controlplane.core.errors import Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get, instance_list
from controlplane.kafka import size_door, topics
from controlplane.topics.notes import NOTHING, Note, note_of, notes_of

if TYPE_CHECKING:
    from controlplane.instances.models import Instance
    from controlplane.kafka.topics import Topic
    from controlplane.tenants.models import Organisation


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic with what the control plane adds to it."""

    topic: Topic
    whitelist: list[str] | None  # None: as the instance
    config: dict[str, str] | None = None  # None: not asked for
    note: Note = NOTHING
    stored_bytes: int | None = None  # all replicas; None: not asked for, or not known


def topic_list(
    *, organisation: Organisation, instance_id: str, prefix: str = "", tag: str = "", with_sizes: bool = False
) -> list[TopicView]:
    """Topics whose names begin so, and that have the tag if one is said, by name. Raises NotFound, ClusterUnavailable.

    `with_sizes`: each broker is asked how much it stores of them.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    found, notes = topics.list_all(instance.cluster.address, instance.id), notes_of(instance)
    views = [_view(instance, topic, notes.get(topic.id, NOTHING)) for topic in found if topic.name.startswith(prefix)]
    fitting = [view for view in views if not tag or tag in view.note.tags]
    return topics_sized(instance, fitting) if with_sizes else fitting


def topics_sized(instance: Instance, views: list[TopicView]) -> list[TopicView]:
    """With how much each broker says that it stores of these; what one does not say stays None."""
    places = [(view.topic.name, each.partition) for view in views for each in view.topic.layout]
    try:
        sizes = size_door.read(instance.cluster.address, instance.id, places) if places else {}
    except Unavailable:  # the rest of the list is known
        sizes = {}
    return [replace(view, stored_bytes=size_door.stored(view.topic, sizes)) for view in views]


def topic_names(*, organisation: Organisation) -> list[tuple[Instance, str]]:
    """The topics of all instances that run, by instance and name. Raises ClusterUnavailable."""
    running = list(instance_list(organisation=organisation, state=InstanceState.RUNNING).order_by("pk"))
    names: dict[str, list[str]] = {}
    for cluster in {instance.cluster_id: instance.cluster.address for instance in running}.values():
        there = [instance.pk for instance in running if instance.cluster.address == cluster]
        names |= topics.names_listed(cluster, there)
    return [(instance, name) for instance in running for name in names[instance.pk]]


def topic_get(*, organisation: Organisation, instance_id: str, name: str) -> TopicView:
    """One topic with its config. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    topic = topics.get(instance.cluster.address, instance.id, name)
    config = topics.config(instance.cluster.address, instance.id, name)
    return _view(instance, topic, note_of(instance, topic.id), config)


def topic_known(*, organisation: Organisation, instance_id: str, name: str) -> None:
    """Raises NotFound where the cluster has no topic of this name, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    topics.get(instance.cluster.address, instance.id, name)


def _view(instance: Instance, topic: Topic, note: Note, config: dict[str, str] | None = None) -> TopicView:
    return TopicView(topic, instance.topic_whitelists.get(topic.name), config, note)
