"""A topic's partitions and configurations as people write them: hours and GiB for milliseconds and bytes.

The form begins with what is set. Empty is the cluster's default; what it has no field for stays as it is.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.advice import said
from controlplane.console.forms.base import GuardedForm
from controlplane.console.forms.topics import HOUR_MS, LONGEST_RETENTION_H
from controlplane.topics.serializers import MOST_PARTITIONS, MOST_REPLICAS
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from controlplane.core.errors import SluiceError
    from controlplane.topics.selectors import TopicView

UNLIMITED = -1
KIB = 2**10
# Field: Kafka's name, and how many of Kafka's units one of the field's is.
SETTINGS = {
    "retention_h": ("retention.ms", HOUR_MS),
    "retention_gib": ("retention.bytes", GIB),
    "cleanup_policy": ("cleanup.policy", None),
    "min_insync_replicas": ("min.insync.replicas", 1),
    "max_message_kib": ("max.message.bytes", KIB),
}


class TopicSettingsForm(GuardedForm):
    """`changes` and `more_partitions` are what is to be done, once the form is valid."""

    refusals: ClassVar = {"limit_reached": "partitions", "invalid_partitions": "partitions"}

    partitions = forms.IntegerField(
        label="Partitions",
        max_value=MOST_PARTITIONS,
        help_text="It can grow, and never shrink. Records of a key may then go to another partition than before.",
    )
    retention_h = forms.DecimalField(
        label="Retention",
        required=False,
        min_value=UNLIMITED,
        max_value=LONGEST_RETENTION_H,
        help_text="How long records are kept. Empty: the cluster's default. -1: forever.",
    )
    retention_gib = forms.DecimalField(
        label="Size of each partition",
        required=False,
        min_value=UNLIMITED,
        max_value=10**6,
        help_text="Older records go when there is more. Empty: the cluster's default. -1: no limit.",
    )
    cleanup_policy = forms.ChoiceField(
        label="Cleanup",
        required=False,
        choices=[
            ("", "The cluster's default"),
            ("delete", "Delete old records"),
            ("compact", "Keep the newest record of each key"),
            ("compact,delete", "Keep the newest of each key, and delete old ones"),
        ],
    )
    min_insync_replicas = forms.IntegerField(
        label="Replicas in sync to acknowledge",
        required=False,
        min_value=1,
        max_value=MOST_REPLICAS,
        help_text="With acks=all, producing fails while fewer are in sync. Empty: the cluster's default.",
    )
    max_message_kib = forms.DecimalField(
        label="Largest batch",
        required=False,
        min_value=1,
        max_value=12 * KIB,
        help_text="Of records, as producers compress it. Empty: the cluster's default.",
    )
    confirmed = forms.BooleanField(
        label="I know that this cannot be undone",
        required=False,
        help_text="Needed where partitions are added, or where records are deleted that would have been kept.",
    )

    def __init__(self, data: Any = None, *, view: TopicView) -> None:
        self._now = view
        config = {kafka: _in_force(kafka, view.config.get(kafka)) for kafka, _ in SETTINGS.values()}
        self._before = {name: _shown(name, config[kafka]) for name, (kafka, _) in SETTINGS.items()}
        now = {"partitions": view.topic.partitions, **config}
        super().__init__(data, now=now, initial={**self._before, "partitions": view.topic.partitions})
        self.fields["partitions"].min_value = view.topic.partitions  # type: ignore[attr-defined]
        self.fields["partitions"].widget.attrs["min"] = view.topic.partitions

    @property
    def more_partitions(self) -> int | None:
        """How many there shall be; None: as many as there are."""
        wanted = self.cleaned_data["partitions"]
        return wanted if wanted != self._now.topic.partitions else None

    @property
    def changes(self) -> dict[str, str | None]:
        """What is to be otherwise, in Kafka's words; None: back to the default."""
        return self.changed(
            {kafka: _kafka_text(name, self.cleaned_data[name]) for name, (kafka, _) in SETTINGS.items()}
        )

    def clean_partitions(self) -> int:
        """Never fewer than there are. As many as the page has shown is no wish: others may have added some."""
        wanted, now = int(self.cleaned_data["partitions"]), self._now.topic.partitions
        if not self.changed({"partitions": wanted}):
            return now
        if wanted < now:
            raise forms.ValidationError(f"The topic has {now}; partitions cannot be taken away.")
        return wanted

    def clean_min_insync_replicas(self) -> int | None:
        """No more than there are replicas, or nothing could be produced with acks=all."""
        wanted, most = self.cleaned_data["min_insync_replicas"], self._now.topic.replication_factor
        if wanted is not None and wanted > most:
            raise forms.ValidationError(f"The topic has {most} replicas; no more than that can be in sync.")
        return wanted

    def clean(self) -> dict[str, Any]:
        """Something changes, and what would lose data has been confirmed."""
        if not self.errors:
            if not self.changes and self.more_partitions is None:
                raise forms.ValidationError("Nothing was changed: the topic is like this already.")
            if self._loses_something() and not self.cleaned_data["confirmed"]:
                self.add_error("confirmed", "Confirm this: it cannot be undone.")
        return self.cleaned_data

    def refuse(self, error: SluiceError) -> None:
        """The cluster names the setting that it does not take."""
        for name, (kafka, _) in SETTINGS.items():
            if kafka in error.detail:
                self.add_error(name, said(error))
                return
        super().refuse(error)

    def _loses_something(self) -> bool:
        changes = self.changes
        shorter = any(
            SETTINGS[name][0] in changes and _less(self.cleaned_data[name], self._before[name])
            for name in ("retention_h", "retention_gib")
        )
        return shorter or self.more_partitions is not None or "cleanup.policy" in changes


def _in_force(kafka: str, value: str | None) -> str | None:
    """Policies in the order of the field's choices: clients may give them in the other one, which means the same."""
    if value is None or kafka != "cleanup.policy":
        return value
    return ",".join(sorted(each.strip() for each in value.split(",")))


def _shown(name: str, value: str | None) -> Any:
    """A setting as its field has it."""
    unit = SETTINGS[name][1]
    if value is None or unit is None:
        return value or ""
    number = Decimal(value)
    if number != UNLIMITED:
        number /= unit
    return int(number) if number == number.to_integral_value() else number


def _kafka_text(name: str, value: Any) -> str | None:
    unit = SETTINGS[name][1]
    if value in (None, ""):
        return None
    return value if unit is None else str(UNLIMITED if value == UNLIMITED else round(value * unit))


def _same(value: Any) -> Any:
    return None if value == "" else value


def _less(wanted: Any, before: Any) -> bool:
    """Whether less is kept than before. What a default keeps is not known here, so leaving or entering it counts."""
    wanted, before = _same(wanted), _same(before)
    if wanted in (before, UNLIMITED):
        return False
    return wanted is None or before in (None, UNLIMITED) or wanted < before
