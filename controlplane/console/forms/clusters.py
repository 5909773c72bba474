"""What operators say of physical clusters."""

from __future__ import annotations

from typing import Any

from django import forms

from controlplane.clusters.models import DEFAULT_CAPACITY, ClusterState, PhysicalCluster
from controlplane.clusters.registering import (
    LONGEST_HOSTS,
    LONGEST_REASON,
    MOST_CAPACITY,
    hosts_problem,
    name_problem,
    zones_problem,
)
from controlplane.console.forms.base import ConsoleForm, ruled
from controlplane.console.forms.rebalancing import NamesField

STATES = {
    ClusterState.OPEN: "Open: new instances are placed on it",
    ClusterState.CORDONED: "Cordoned: it takes no new instances",
    ClusterState.DRAINING: "Draining: it takes none, and what is there is to be moved away",
    ClusterState.RETIRED: "Retired: nothing is there, and nobody asks it any more",
}


def _text(**attributes: str) -> forms.TextInput:
    return forms.TextInput({"autocomplete": "off", "spellcheck": "false", **attributes})


def _zones() -> NamesField:
    return NamesField(
        label="Zones",
        help_text="Where its brokers are, such as eu-1a, eu-1b. Tenants can wish for them; empty: nobody is told.",
    )


def _capacity(**options: Any) -> forms.IntegerField:
    return forms.IntegerField(
        label="Instances at most",
        min_value=0,
        max_value=MOST_CAPACITY,
        widget=forms.NumberInput({"min": "0", "max": str(MOST_CAPACITY), "inputmode": "numeric"}),
        **options,
    )


def _reason(**options: Any) -> forms.CharField:
    return forms.CharField(
        label="Reason",
        max_length=LONGEST_REASON,
        help_text="It stays on record with your name.",
        widget=_text(),
        **options,
    )


class _ZonedForm(ConsoleForm):
    """Zones are judged by the rule of the service."""

    def clean_zones(self) -> list[str]:
        zones: list[str] = self.cleaned_data["zones"]
        ruled(zones_problem)(zones)
        return zones


class ClusterRegisterForm(_ZonedForm):
    """A cluster that runs, or will."""

    name = forms.CharField(
        label="Name",
        max_length=63,
        validators=[ruled(name_problem)],
        help_text="Small letters, digits and dashes. It stays.",
        widget=_text(),
    )
    zookeeper_hosts = forms.CharField(
        label="ZooKeeper",
        max_length=LONGEST_HOSTS,
        validators=[ruled(hosts_problem)],
        help_text="Its servers and the chroot, such as 10.0.0.7:2181,10.0.0.8:2181/kafka.",
        widget=_text(),
    )
    zones = _zones()
    capacity = _capacity(initial=DEFAULT_CAPACITY)
    reason = _reason(required=False)


class ClusterChangeForm(_ZonedForm):
    """What it may be used for."""

    state = forms.ChoiceField(
        label="State", choices=[(str(state), title) for state, title in STATES.items()], widget=forms.RadioSelect
    )
    zones = _zones()
    capacity = _capacity()
    reason = _reason()

    def __init__(self, data: Any = None, *, cluster: PhysicalCluster) -> None:
        self._cluster = cluster
        now = {"state": cluster.state, "zones": ", ".join(cluster.zones), "capacity": cluster.capacity}
        super().__init__(data, initial=now)

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from what is in force."""
        wanted = {name: self.cleaned_data[name] for name in ("state", "zones", "capacity")}
        wanted["zones"] = sorted(set(wanted["zones"]))
        return {name: value for name, value in wanted.items() if value != getattr(self._cluster, name)}
