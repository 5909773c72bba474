"""History as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework import serializers

from controlplane.history.lag import rows as lag
from controlplane.history.metrics import EVERY, PERCENTILES
from controlplane.history.requests import brokers, topics
from controlplane.history.resolutions import RESOLUTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.history.metrics import Metric


class HistoryMetricSerializer(serializers.Serializer[Any]):
    """What a member of the items is."""

    name = serializers.CharField()
    unit = serializers.CharField()
    maximum = serializers.CharField(allow_null=True, help_text="the member with its maximum; null: it has none")


class HistoryPointSerializer(serializers.Serializer[Any]):
    """A step; a member is absent where it was not asked for, and null where nothing is known.

    A limit, or an allocation, is null where it is unlimited as well: `gaps` says which of the two.
    """

    time = serializers.DateTimeField(help_text="when the step begins")

    def get_fields(self) -> dict[str, Any]:
        """Every metric, and the maximum of each that has one."""
        found = super().get_fields()
        for metric in EVERY.values():
            for name, text in _members(metric):
                found[name] = serializers.FloatField(required=False, allow_null=True, help_text=text)
        return found


class HistoryGapSerializer(serializers.Serializer[Any]):
    """A time in which nothing was sampled: a limit or an allocation that is null in it is not known."""

    start = serializers.DateTimeField(help_text="of its first step")
    end = serializers.DateTimeField(help_text="of its last step, not included")


GAPS = (
    "times without a sample: nothing that is null is known in them. In every other step a limit that is null is unlimited; an "
    "allocation that is null is unlimited, or none of the instance's partitions had a leader"
)


COMPLETE = "false: the metrics store does not answer, and steps that only it has are null"


class StepsSerializer(serializers.Serializer[Any]):
    """Items in steps, with the rows they were made of."""

    start = serializers.DateTimeField(help_text="of the first step")
    end = serializers.DateTimeField(help_text="of the last step")
    step_s = serializers.IntegerField()
    resolution_s = serializers.IntegerField(
        help_text=f"of the rows that steps are made of: {', '.join(str(each.step_s) for each in RESOLUTIONS)}"
    )
    metrics = HistoryMetricSerializer(many=True)
    is_complete = serializers.BooleanField(help_text=COMPLETE)
    next = serializers.CharField(allow_null=True, help_text="always null: all steps are in one answer")


class HistorySerializer(StepsSerializer):
    """An instance's items in steps."""

    items = HistoryPointSerializer(many=True)
    gaps = HistoryGapSerializer(many=True, help_text=GAPS)


class GroupHistoryPointSerializer(serializers.Serializer[Any]):
    """A step; null where nothing is known: the group was not there, the cluster did not answer, or no record had a time."""

    time = serializers.DateTimeField(help_text="when the step begins")

    def get_fields(self) -> dict[str, Any]:
        """Every metric of a group, and its maximum."""
        found = super().get_fields()
        for metric in lag.METRICS.values():
            for name, text in _members(metric):
                found[name] = serializers.FloatField(allow_null=True, help_text=text)
        return found


class GroupHistorySerializer(StepsSerializer):
    """A group's items in steps."""

    resolution_s = serializers.IntegerField(
        help_text=f"of the rows that steps are made of: {', '.join(str(each.step_s) for each in lag.RESOLUTIONS)}"
    )
    items = GroupHistoryPointSerializer(many=True)


class _PointSerializer(serializers.Serializer[Any]):
    """A step of what has no maxima: its moment, and each of `metrics`."""

    metrics: ClassVar[Mapping[str, Metric]] = {}

    time = serializers.DateTimeField(help_text="when the step begins")

    def get_fields(self) -> dict[str, Any]:
        """Every metric."""
        found = super().get_fields()
        for metric in self.metrics.values():
            found[metric.name] = serializers.FloatField(allow_null=True, help_text=f"{metric.help}; in {metric.unit}")
        return found


class TopicHistoryPointSerializer(_PointSerializer):
    """A step; null where nothing is known, or where the topic may be among those that moved too little to be named."""

    metrics: ClassVar = topics.METRICS


class TopicHistorySerializer(StepsSerializer):
    """A topic's items in steps."""

    items = TopicHistoryPointSerializer(many=True)


class BrokerHistoryPointSerializer(_PointSerializer):
    """A step; null where nothing is known, or, of a latency, where there was no such request."""

    metrics: ClassVar = brokers.METRICS


class BrokerHistorySerializer(StepsSerializer):
    """A broker's items in steps."""

    items = BrokerHistoryPointSerializer(many=True)


class LatencySerializer(serializers.Serializer[Any]):
    """Milliseconds; null: there was none."""

    def get_fields(self) -> dict[str, Any]:
        """The percentiles."""
        return {
            name: serializers.FloatField(allow_null=True, help_text=f"{100 * share:g} % took no longer")
            for name, share in PERCENTILES.items()
        }


class LatenciesSerializer(serializers.Serializer[Any]):
    """By phase, as Kafka's request metrics have them."""

    total = LatencySerializer(help_text="TotalTimeMs: from when the broker has read a request until its answer leaves")
    local = LatencySerializer(help_text="LocalTimeMs: of that, without the time in which it waited for others")
    remote = LatencySerializer(help_text="RemoteTimeMs: it waited for replicas, records, members of a group")
    throttle = LatencySerializer(help_text="ThrottleTimeMs: what its answer told the client to wait; not part of total")


class ApiRequestsSerializer(serializers.Serializer[Any]):
    """Requests of one API over the whole time."""

    api = serializers.CharField(help_text="Kafka's name, such as Produce or ListOffsets")
    requests = serializers.IntegerField()
    requests_per_s = serializers.FloatField()
    errors = serializers.IntegerField(  # type: ignore[assignment]  # what a serializer has to say of input: there is none
        help_text="error codes answered; of a request one for each partition that has one"
    )
    error_codes = serializers.DictField(child=serializers.IntegerField(), help_text="by Kafka's name of the error")
    latency_ms = LatenciesSerializer()


class RequestStepSerializer(serializers.Serializer[Any]):
    """A step; null where nothing is known."""

    time = serializers.DateTimeField(help_text="when the step begins")
    requests_per_s = serializers.DictField(child=serializers.FloatField(), allow_null=True, help_text="by API")
    errors_per_s = serializers.DictField(child=serializers.FloatField(), allow_null=True, help_text="by error")


class RequestsSerializer(serializers.Serializer[Any]):
    """Requests by API, those that occurred most first, and how they are spread over time."""

    start = serializers.DateTimeField(help_text="of the first step")
    end = serializers.DateTimeField(help_text="of the last step")
    step_s = serializers.IntegerField()
    resolution_s = serializers.IntegerField(
        help_text=f"of the rows that steps are made of: {', '.join(str(each.step_s) for each in RESOLUTIONS)}"
    )
    items = ApiRequestsSerializer(many=True)
    steps = RequestStepSerializer(many=True)
    is_complete = serializers.BooleanField(help_text=COMPLETE)
    next = serializers.CharField(allow_null=True, help_text="always null: all APIs are in one answer")


class InstanceMetricValueSerializer(serializers.Serializer[Any]):
    """A step of one metric."""

    time = serializers.DateTimeField()
    value = serializers.FloatField(allow_null=True)


class InstanceMetricSerializer(serializers.Serializer[Any]):
    """One metric."""

    name = serializers.CharField()
    unit = serializers.CharField()
    items = InstanceMetricValueSerializer(many=True)
    gaps = HistoryGapSerializer(many=True, help_text=GAPS)
    is_complete = serializers.BooleanField(help_text=COMPLETE)


def _members(metric: Metric) -> list[tuple[str, str]]:
    average = [(metric.name, f"{metric.help}; in {metric.unit}")]
    return average if metric.maximum is None else [*average, (metric.maximum, "its maximum")]
