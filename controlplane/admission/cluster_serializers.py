"""Physical clusters and zones as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.admission.placement import Obstacle
from controlplane.admission.rules import RESOURCES
from controlplane.admission.serializers import AmountField, ReasonField
from controlplane.api.serializers import StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.clusters.models import ClusterState
from controlplane.clusters.registering import (
    LONGEST_HOSTS,
    MOST_CAPACITY,
    MOST_ZONES,
    NAME,
    ZONE,
    hosts_problem,
    name_problem,
    zones_problem,
)

STATES = (
    "open: instances are placed on it; cordoned: no new ones; draining: nor this, and what is there is to be moved away; "
    "retired: nothing is there, and nobody asks it any more"
)

DECISIONS = ("register", "change", "rebalancing")


class _ClusterNameField(StrictCharField):
    """Small letters, digits and dashes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=63, **options)

    def to_internal_value(self, data: Any) -> str:
        return _ruled(super().to_internal_value(data), name_problem)


class _HostsField(StrictCharField):
    """Of ZooKeeper."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=LONGEST_HOSTS, **options)

    def to_internal_value(self, data: Any) -> str:
        return _ruled(super().to_internal_value(data), hosts_problem)


class ZonesField(serializers.ListField):
    """Names of zones."""

    child = StrictCharField(max_length=63)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MOST_ZONES, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(_ruled(super().to_internal_value(data), zones_problem))


def _ruled(value: Any, rule: Any) -> Any:
    problem = rule(value)
    if problem is not None:
        raise serializers.ValidationError(problem)
    return value


class ClusterUseSerializer(serializers.Serializer[Any]):
    """One resource of a cluster."""

    resource = serializers.ChoiceField(choices=list(RESOURCES))
    capacity = AmountField(help_text="what may be sold")
    sold = AmountField()
    percent = serializers.IntegerField(help_text="how much of it is sold; more than 100 where it was lowered")


class ClusterSerializer(serializers.Serializer[Any]):
    """A physical cluster, what it has and what of it is sold."""

    name = serializers.CharField(help_text="it stays")
    state = serializers.ChoiceField(choices=ClusterState.choices, help_text=STATES)
    zones = serializers.ListField(child=serializers.CharField(), help_text="where its brokers are")
    zookeeper_hosts = serializers.CharField(help_text="with the chroot; empty: the installation's own")
    capacity = serializers.IntegerField(help_text="how many instances it takes")
    instances = serializers.IntegerField(help_text="that are there; what is gone does not count")
    brokers = serializers.IntegerField(help_text="that have ever registered")
    brokers_there = serializers.IntegerField(help_text="of them, when somebody looked last")
    resources = ClusterUseSerializer(many=True)


class ClusterPageSerializer(serializers.Serializer[Any]):
    """All of them, the oldest first."""

    items = ClusterSerializer(many=True)


class ClusterCreateSerializer(StrictSerializer):
    """A cluster that is there and was not known."""

    name = _ClusterNameField(help_text=f"{NAME.pattern}: it stays")
    zookeeper_hosts = _HostsField(help_text="host:port,host:port with an optional /chroot")
    zones = ZonesField(required=False, help_text=f"{ZONE.pattern}, such as eu-1a")
    capacity = StrictIntegerField(
        required=False, min_value=0, max_value=MOST_CAPACITY, help_text="instances; by default 500"
    )
    reason = ReasonField(required=False)


class ClusterChangeSerializer(StrictSerializer):
    """PATCH: what is not named stays."""

    not_empty = True

    zones = ZonesField(required=False)
    capacity = StrictIntegerField(required=False, min_value=0, max_value=MOST_CAPACITY)
    state = serializers.ChoiceField(required=False, choices=ClusterState.choices, help_text=STATES)
    reason = ReasonField()


class ClusterEventSerializer(serializers.Serializer[Any]):
    """A decision about a cluster."""

    at = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.ChoiceField(choices=DECISIONS)
    changes = serializers.DictField(source="detail", help_text="by member: from and to")
    reason = serializers.CharField(allow_blank=True)


class LeftSerializer(serializers.Serializer[Any]):
    """An instance that is still there, and where it could go."""

    instance_id = serializers.CharField(source="instance.id")
    organisation_id = serializers.CharField(source="instance.organisation_id")
    name = serializers.CharField(source="instance.name")
    state = serializers.CharField(source="instance.state")
    bandwidth_mib_per_s = serializers.FloatField(source="instance.bandwidth_mib_per_s")
    storage_gib = serializers.FloatField(source="instance.storage_gib")
    partitions = serializers.IntegerField(source="instance.partitions")
    destination = serializers.CharField(
        source="destination.name",
        default=None,
        allow_null=True,
        help_text="a cluster that has room for it; null: none has",
    )
    obstacle = serializers.ChoiceField(
        choices=[each.value for each in Obstacle],
        allow_null=True,
        help_text="why there is none: none takes new instances, or is in its zones, or has none of those it is to be apart from, "
        "or has room",
    )


class LeavingSerializer(serializers.Serializer[Any]):
    """What has to be moved away before a cluster is empty."""

    cluster = serializers.CharField()
    state = serializers.ChoiceField(choices=ClusterState.choices)
    instances = LeftSerializer(
        many=True, help_text="the largest first; each could go where is said, all of them together"
    )
    how = serializers.CharField(help_text="a sentence: nothing moves by itself")


class ZoneSerializer(serializers.Serializer[Any]):
    """A place that can be wished for."""

    name = serializers.CharField()
    takes_new = serializers.BooleanField(help_text="whether new instances are placed there now")


class ZonePageSerializer(serializers.Serializer[Any]):
    """Zones, by name; none where clusters are in none."""

    items = ZoneSerializer(many=True)
