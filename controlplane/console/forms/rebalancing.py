"""What operators wish of a rebalance."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from controlplane.clusters.services import cluster_list
from controlplane.console.forms.base import ConsoleForm
from controlplane.rebalancing.automatic import (
    LEAST_LASTING_MINUTES,
    LEAST_REST_HOURS,
    LEAST_SKEW_PERCENT,
    LONGEST_REASON,
    MEMBERS,
    MOST_LASTING_MINUTES,
    MOST_REST_HOURS,
    MOST_SKEW_PERCENT,
)
from controlplane.rebalancing.models import DEFAULT_AT_ONCE, DEFAULT_THROTTLE_BYTES_PER_S, BalanceMode
from controlplane.rebalancing.planner.model import DEFAULT_GOALS, Goal
from controlplane.rebalancing.services import (
    LEAST_THROTTLE_BYTES_PER_S,
    MARGIN_PERCENT,
    MOST_AT_ONCE,
    MOST_MARGIN_PERCENT,
)

MIB = 2**20
GOALS = {
    Goal.LEADERS: "Leaders",
    Goal.PRODUCE: "Flow of producers",
    Goal.CONSUME: "Flow of consumers",
    Goal.REPLICAS: "Replicas",
    Goal.DISK: "Disk",
    Goal.BANDWIDTH: "Bandwidth that tenants have bought",
}


class NamesField(forms.CharField):
    """Several, with commas or spaces between them."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("max_length", 4000)
        super().__init__(**options)
        self.widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean(self, value: Any) -> list[Any]:
        """In their order."""
        return [entry for entry in re.split(r"[\s,;]+", super().clean(value)) if entry]


class BrokersField(NamesField):
    """Ids of brokers."""

    def clean(self, value: Any) -> list[int]:
        """As numbers."""
        entries = super().clean(value)
        if not all(entry.isascii() and entry.isdigit() and len(entry) < 10 for entry in entries):
            raise forms.ValidationError("Give the ids of brokers, such as 1, 2.")
        return [int(entry) for entry in entries]


def _whole(low: int, high: int) -> forms.NumberInput:
    return forms.NumberInput({"min": str(low), "max": str(high), "inputmode": "numeric"})


class PaceForm(ConsoleForm):
    """How fast."""

    throttle_mib_per_s = forms.FloatField(
        label="Throttle of each broker",
        initial=DEFAULT_THROTTLE_BYTES_PER_S // MIB,
        min_value=LEAST_THROTTLE_BYTES_PER_S / MIB,
        help_text="How fast each broker may copy replicas in, and out. Clients are not throttled by it.",
        widget=forms.NumberInput({"step": "any", "inputmode": "decimal"}),
    )
    at_once = forms.IntegerField(
        label="Partitions copied at once",
        initial=DEFAULT_AT_ONCE,
        min_value=1,
        max_value=MOST_AT_ONCE,
        widget=_whole(1, MOST_AT_ONCE),
    )
    refusals = {"throttle_bytes_per_s": "throttle_mib_per_s"}  # noqa: RUF012  # as its base has it

    @property
    def pace(self) -> dict[str, int]:
        """As the services take it."""
        return {
            "throttle_bytes_per_s": round(self.cleaned_data["throttle_mib_per_s"] * MIB),
            "at_once": self.cleaned_data["at_once"],
        }


MODES = {
    BalanceMode.OFF: "Never",
    BalanceMode.PROPOSE: "Propose: there is a proposal, and operators have it carried out",
    BalanceMode.CARRY_OUT: "Propose and carry out",
}


class BalanceRuleForm(PaceForm):
    """When a cluster is rebalanced by itself."""

    mode = forms.ChoiceField(
        label="By itself",
        choices=[(str(mode), title) for mode, title in MODES.items()],
        widget=forms.RadioSelect,
        help_text="Where an operator has to approve proposals, nothing is carried out before.",
    )
    new_brokers = forms.BooleanField(label="Where a broker has no replicas yet", required=False)
    skew_percent = forms.IntegerField(
        label="Where a broker is above the average by",
        required=False,
        min_value=LEAST_SKEW_PERCENT,
        max_value=MOST_SKEW_PERCENT,
        help_text="Of leaders, flow, replicas or disk, where there is enough of it to matter. Empty: never.",
        widget=_whole(LEAST_SKEW_PERCENT, MOST_SKEW_PERCENT),
    )
    lasting_minutes = forms.IntegerField(
        label="And has been for",
        min_value=LEAST_LASTING_MINUTES,
        max_value=MOST_LASTING_MINUTES,
        widget=_whole(LEAST_LASTING_MINUTES, MOST_LASTING_MINUTES),
    )
    rest_hours = forms.IntegerField(
        label="And the last rebalance ended before",
        min_value=LEAST_REST_HOURS,
        max_value=MOST_REST_HOURS,
        widget=_whole(LEAST_REST_HOURS, MOST_REST_HOURS),
    )
    in_windows = forms.BooleanField(
        label="Only in the maintenance windows of instances that have one",
        required=False,
        help_text="A window comes once a week: until the last one the rebalance is under way, and no other can begin.",
    )
    reason = forms.CharField(
        label="Reason",
        max_length=LONGEST_REASON,
        help_text="It stays on record with your name.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )

    @property
    def changes(self) -> dict[str, Any]:
        """As `rule_set` takes them."""
        return {name: value for name, value in {**self.cleaned_data, **self.pace}.items() if name in MEMBERS}


class RebalanceForm(PaceForm):
    """A proposal."""

    cluster = forms.ChoiceField(label="Cluster")
    goals = forms.MultipleChoiceField(
        label="Goals, the most important first",
        choices=[(str(goal), title) for goal, title in GOALS.items()],
        initial=list(map(str, DEFAULT_GOALS)),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    draining = BrokersField(
        label="Drain brokers", help_text="Ids, such as 2, 3. All their replicas move to other brokers."
    )
    cordoned = BrokersField(
        label="Cordon brokers", help_text="Ids. They keep what they have and receive no more replicas."
    )
    demoted = BrokersField(label="Demote brokers", help_text="Ids. They keep their replicas and lead none of them.")
    instances = NamesField(
        label="Only these instances",
        help_text="Ids, such as ins-k3v9x2qa. Empty: all instances, and the cluster's own topics.",
    )
    margin_percent = forms.IntegerField(
        label="Tolerance",
        initial=MARGIN_PERCENT,
        min_value=0,
        max_value=MOST_MARGIN_PERCENT,
        help_text="How far above or below the average a broker may stay. The smaller, the more is moved.",
        widget=_whole(0, MOST_MARGIN_PERCENT),
    )
    leaders_only = forms.BooleanField(
        label="Change leaders only, and copy nothing except off drained brokers", required=False
    )

    in_windows = forms.BooleanField(
        label="Only in the maintenance windows of instances that have one",
        required=False,
        help_text="A window comes once a week: until the last one the rebalance is under way, and no other can begin.",
    )

    field_order = (
        "cluster", "goals", "draining", "cordoned", "demoted", "instances", "leaders_only", "in_windows", "margin_percent",
        "throttle_mib_per_s", "at_once",
    )  # fmt: skip

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._clusters = {str(cluster.pk): cluster for cluster in cluster_list()}
        self.fields["cluster"].choices = [(key, cluster.name) for key, cluster in self._clusters.items()]  # type: ignore[attr-defined]

    @property
    def wishes(self) -> dict[str, Any]:
        """As `rebalance_propose` takes them."""
        names = (
            "goals",
            "draining",
            "cordoned",
            "demoted",
            "instances",
            "margin_percent",
            "leaders_only",
            "in_windows",
        )
        found = {name: self.cleaned_data[name] for name in names}
        return {"cluster": self._clusters[self.cleaned_data["cluster"]], **found, **self.pace}
