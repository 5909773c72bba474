"""What operators see of all organisations, as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.core.serializers import OperationSerializer
from controlplane.fleet.listing import BROKER_STATES, ORGANISATION_STATES
from controlplane.fleet.measures import Unit
from controlplane.fleet.problems import KINDS
from controlplane.health.serializers import HealthSerializer
from controlplane.instances.models import InstanceState

UNKNOWN = "null: no flow master answers"


class FleetInstanceSerializer(serializers.Serializer[Any]):
    """An instance of anybody's, with what flows through it now."""

    id = serializers.CharField()
    name = serializers.CharField()
    organisation_id = serializers.CharField()
    organisation_name = serializers.CharField(source="organisation.name")
    cluster = serializers.CharField(source="cluster.name")
    state = serializers.ChoiceField(choices=InstanceState.choices)
    bandwidth_mib_per_s = serializers.FloatField()
    storage_gib = serializers.FloatField()
    partitions = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    health = HealthSerializer(allow_null=True, help_text="how it is, and why; null unless it is running")
    produce_bytes_per_s = serializers.IntegerField(allow_null=True, help_text=UNKNOWN)
    consume_bytes_per_s = serializers.IntegerField(allow_null=True, help_text=UNKNOWN)
    storage_used_bytes = serializers.IntegerField(allow_null=True, help_text=UNKNOWN)
    connections = serializers.IntegerField(allow_null=True, help_text=UNKNOWN)


class FleetInstancePageSerializer(serializers.Serializer[Any]):
    """Everybody's instances, a page at a time."""

    items = FleetInstanceSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class FleetInstanceDetailSerializer(FleetInstanceSerializer):
    """The same with its limits, its address, and how bandwidth is shared out between brokers."""

    bootstrap = serializers.CharField(allow_null=True, help_text="null: it has no address yet")
    limits = serializers.DictField(
        child=serializers.IntegerField(allow_null=True),
        help_text="those beside bandwidth, storage and partitions; null: none",
    )
    allocation = serializers.DictField(
        child=serializers.JSONField(),
        allow_null=True,
        help_text="members of `GET …/instances/{instance_id}/allocation`; null: no flow master answers",
    )


class FleetOrganisationSerializer(serializers.Serializer[Any]):
    """An organisation, and what its instances have together."""

    id = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(
        choices=ORGANISATION_STATES, help_text="marked: for deletion, until `deletes_at`; nobody uses it"
    )
    created_at = serializers.DateTimeField()
    deletes_at = serializers.DateTimeField(allow_null=True)
    instances = serializers.IntegerField()
    bandwidth_mib_per_s = serializers.FloatField()
    storage_gib = serializers.FloatField()
    partitions = serializers.IntegerField()


class FleetOrganisationPageSerializer(serializers.Serializer[Any]):
    """Organisations, a page at a time."""

    items = FleetOrganisationSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class FleetOperationSerializer(OperationSerializer):
    """An operation of anybody's."""

    organisation_id = serializers.CharField(allow_null=True, help_text="null: of the service itself")


class FleetOperationPageSerializer(serializers.Serializer[Any]):
    """Everybody's operations, a page at a time."""

    items = FleetOperationSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class MissingOfBrokerSerializer(serializers.Serializer[Any]):
    """What the cluster lacks while a broker is away."""

    replicas_behind = serializers.IntegerField()
    partitions_without_leader = serializers.IntegerField()
    group_partitions_without_coordinator = serializers.IntegerField(help_text="partitions of `__consumer_offsets`")


class FleetBrokerSerializer(serializers.Serializer[Any]):
    """A broker with what it leads and carries over all instances."""

    cluster = serializers.CharField()
    broker = serializers.IntegerField()
    state = serializers.ChoiceField(
        choices=BROKER_STATES,
        help_text="silent: registered, and does not report; away: not registered in ZooKeeper; registered: no flow master "
        "answers; unknown: ZooKeeper does not answer either",
    )
    host = serializers.CharField(allow_null=True)
    port = serializers.IntegerField(allow_null=True)
    rack = serializers.CharField(allow_null=True)
    away_since = serializers.DateTimeField(allow_null=True)
    instances = serializers.IntegerField(allow_null=True)
    leaders = serializers.IntegerField(allow_null=True)
    produce_flow_bytes_per_s = serializers.IntegerField(allow_null=True)
    produce_allocation_bytes_per_s = serializers.IntegerField(allow_null=True, help_text="what it may carry")
    consume_flow_bytes_per_s = serializers.IntegerField(allow_null=True)
    consume_allocation_bytes_per_s = serializers.IntegerField(allow_null=True)
    missing = MissingOfBrokerSerializer(allow_null=True, help_text="null: nothing is")
    figures_at = serializers.DateTimeField(
        allow_null=True, help_text="when a master said so last; null: it says so now, or never has"
    )


class FleetBrokerPageSerializer(serializers.Serializer[Any]):
    """Brokers of all clusters, a page at a time."""

    items = FleetBrokerSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class AbsenceSerializer(serializers.Serializer[Any]):
    """A time in which a broker was not registered."""

    began_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="null: it is still away")


class OnBrokerSerializer(serializers.Serializer[Any]):
    """An instance on a broker, as the master said it last."""

    instance_id = serializers.CharField()
    organisation_id = serializers.CharField()
    flow_bytes_per_s = serializers.FloatField(allow_null=True)
    allocation_percent = serializers.FloatField(allow_null=True, help_text="of what it may carry there, 100 at most")
    loop_ms_per_s = serializers.FloatField(allow_null=True, help_text="of the broker's time")
    leaders = serializers.FloatField(allow_null=True)


class FleetBrokerDetailSerializer(FleetBrokerSerializer):
    """The same with its busiest instances and when it was away."""

    busiest = OnBrokerSerializer(many=True, help_text="those with most flow there, 25 at most")
    absences = AbsenceSerializer(many=True, help_text="the last first, 10 at most")


class HeatRowSerializer(serializers.Serializer[Any]):
    """A line of the map."""

    id = serializers.CharField(help_text="of the broker, or the instance")
    name = serializers.CharField()
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="one for each column; null: it is not known"
    )


class HeatSerializer(serializers.Serializer[Any]):
    """Numbers of a map of heat."""

    cluster = serializers.CharField()
    of = serializers.CharField(help_text="brokers, instances, or now")
    measure = serializers.CharField()
    unit = serializers.CharField(help_text=f"one of {', '.join(Unit)}; rate: bytes a second")
    at = serializers.DateTimeField(allow_null=True, help_text="of `now`: when a master said so")
    columns = serializers.ListField(
        child=serializers.CharField(), help_text="beginnings of the steps; of `now` ids of brokers"
    )
    rows = HeatRowSerializer(many=True)
    left_out = serializers.IntegerField(help_text="rows that have less than all of these")


class FleetProblemSerializer(serializers.Serializer[Any]):
    """What is the matter somewhere."""

    id = serializers.CharField(source="key", help_text="the same as long as it is the same")
    kind = serializers.ChoiceField(choices=KINDS)
    detail = serializers.CharField()
    cluster = serializers.CharField(allow_null=True)
    broker = serializers.IntegerField(allow_null=True)
    instance_id = serializers.CharField(allow_null=True)
    month = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True, help_text="null: nobody knows")


class FleetProblemPageSerializer(serializers.Serializer[Any]):
    """Problems, a page at a time."""

    items = FleetProblemSerializer(many=True)
    next = serializers.CharField(allow_null=True)
