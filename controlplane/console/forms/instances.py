"""Buying, changing and deleting an instance, and who may connect to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.billing.pricing.prepaid_prices import LEAST_MONTHS, MOST_MONTHS
from controlplane.console.advice import said, sentence
from controlplane.console.forms.base import CidrsField, ConsoleForm, GuardedForm, OnceForm, ruled
from controlplane.console.wording import worded
from controlplane.core.text import LONGEST_NAME
from controlplane.instances import windows
from controlplane.instances.spec import config_of
from controlplane.instances.validation import (
    CONFIG_RULES,
    MOST_BANDWIDTH_MIB_PER_S,
    MOST_DEFAULT_PARTITIONS,
    MOST_MESSAGE_BYTES,
    MOST_PARTITIONS,
    MOST_REPLICAS,
    MOST_STORAGE_GIB,
    RULES,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.billing.pricing.plans import Plan
    from controlplane.core.errors import SluiceError
    from controlplane.instances.models import Instance


def _amount(most: int, step: str) -> forms.NumberInput:
    return forms.NumberInput({"min": "0", "max": str(most), "step": step, "inputmode": "decimal"})


class PricedForm(ConsoleForm):
    """A high price is confirmed: the box appears once the price was shown."""

    confirm_price = forms.BooleanField(label="I know the price", required=False)
    is_price_unconfirmed = False

    def refuse(self, error: SluiceError) -> None:
        """The box stands beside the reason."""
        self.is_price_unconfirmed = error.code == "price_unconfirmed"
        if error.code in ("cluster_full", "organisation_cap", "no_place"):
            self.add_error(None, said(error))  # whole: some of it may be about what is in no field
        else:
            super().refuse(error)


class InstanceSettingsForm(ConsoleForm):
    """What was bought, and its name."""

    name = forms.CharField(
        label="Name",
        max_length=LONGEST_NAME,
        validators=[ruled(RULES["name"])],
        help_text="Only people see it; clients connect by address.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    bandwidth_mib_per_s = forms.FloatField(
        label="Bandwidth",
        validators=[ruled(RULES["bandwidth_mib_per_s"])],
        help_text="For each direction, over all brokers together.",
        widget=_amount(MOST_BANDWIDTH_MIB_PER_S, "any"),
    )
    storage_gib = forms.FloatField(
        label="Storage",
        validators=[ruled(RULES["storage_gib"])],
        help_text="All replicas together: 1 GiB of records with 3 replicas takes 3 GiB.",
        widget=_amount(MOST_STORAGE_GIB, "any"),
    )
    partitions = forms.IntegerField(
        label="Partitions",
        validators=[ruled(RULES["partitions"])],
        help_text="Replicas included: a topic of 6 partitions with 3 replicas takes 18.",
        widget=_amount(MOST_PARTITIONS, "1"),
    )

    units: ClassVar = {"bandwidth_mib_per_s": "MiB/s", "storage_gib": "GiB", "partitions": ""}


class InstanceChangeForm(InstanceSettingsForm, PricedForm, GuardedForm):
    """The same for an existing instance. The box for full storage appears only when it is needed."""

    deletion_protection = forms.BooleanField(
        label="Deletion protection",
        required=False,
        help_text="While it is on, nobody deletes the instance: not here, not by API or command line.",
    )
    window_day = forms.ChoiceField(
        label="Maintenance window",
        required=False,
        choices=[("", "None"), *((day, day.capitalize()) for day in windows.DAYS)],
        help_text="When in a week what disturbs clients may happen, such as moves of partitions.",
    )
    window_hour_utc = forms.IntegerField(
        label="Window begins",
        required=False,
        min_value=0,
        max_value=windows.LATEST_HOUR,
        help_text="A full hour, UTC.",
        widget=_amount(windows.LATEST_HOUR, "1"),
    )
    window_length_hours = forms.IntegerField(
        label="Window lasts",
        required=False,
        min_value=1,
        max_value=windows.LONGEST_HOURS,
        help_text="It may go on next day.",
        widget=_amount(windows.LONGEST_HOURS, "1"),
    )
    accept_full_storage = forms.BooleanField(
        label="I know that producing will be refused",
        required=False,
        help_text="Until topics are deleted, or records expire. Consuming goes on.",
    )
    at = forms.DateTimeField(
        label="When",
        required=False,
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="UTC, within 30 days: sizes are changed then. Empty: now.",
    )
    in_next_window = forms.BooleanField(
        label="In the next maintenance window",
        required=False,
        help_text="Sizes are changed when it opens.",
    )
    is_below_use = False

    def clean(self) -> dict[str, Any]:
        """A window is whole, or none; sizes are changed at one moment."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        hour, length = found.get("window_hour_utc"), found.get("window_length_hours")
        if found.get("window_day"):
            for name, value in (("window_hour_utc", hour), ("window_length_hours", length)):
                if value is None and name not in self.errors:
                    self.add_error(name, "A maintenance window has a day, a beginning and a length.")
        if found.get("at") and found.get("in_next_window"):
            self.add_error("at", "Give a moment, or take the next maintenance window.")
        is_one = found.get("window_day") and hour is not None and length is not None
        found["maintenance_window"] = (
            {"day": found["window_day"], "hour_utc": hour, "length_hours": length} if is_one else None
        )
        return found

    def refuse(self, error: SluiceError) -> None:
        """Less storage than is used is confirmed beside the reason."""
        self.is_below_use = error.code == "storage_below_use"
        super().refuse(error)


class InstanceConfigForm(GuardedForm):
    """What holds for an instance's topics that do not say."""

    auto_create_topics = forms.BooleanField(
        label="Auto-create topics",
        required=False,
        help_text="A topic is made when a client names it; a misspelt name makes one, too.",
    )
    default_partitions = forms.IntegerField(
        label="Partitions",
        validators=[ruled(CONFIG_RULES["default_partitions"])],
        help_text="Of a topic that does not say.",
        widget=_amount(MOST_DEFAULT_PARTITIONS, "1"),
    )
    default_replication_factor = forms.IntegerField(
        label="Replicas",
        validators=[ruled(CONFIG_RULES["default_replication_factor"])],
        help_text="Of a topic that does not say. 3 survive the loss of a broker without a pause.",
        widget=_amount(MOST_REPLICAS, "1"),
    )
    max_message_bytes = forms.IntegerField(
        label="Largest batch",
        validators=[ruled(CONFIG_RULES["max_message_bytes"])],
        help_text="Of records, as producers compress it; of topics that have no setting of their own.",
        widget=_amount(MOST_MESSAGE_BYTES, "1"),
    )

    def __init__(self, data: Any = None, *, instance: Instance) -> None:
        now = config_of(instance.config)
        super().__init__(data, now=now, initial=now)

    @property
    def changes(self) -> dict[str, Any]:
        """What is to be otherwise."""
        return self.changed(self.cleaned_data)

    def refuse(self, error: SluiceError) -> None:
        """The service names members of `config`."""
        for problem in error.errors:
            self.add_error(problem.field.removeprefix("config."), sentence(problem.detail))
        if not error.errors:
            super().refuse(error)


class InstanceCreateForm(InstanceSettingsForm, PricedForm, OnceForm):
    """Everything that an instance is created with; sizes and whitelist are checked as REST does.

    What can be wished of the place is asked for only where there is a choice: `zones` are those that new instances may be in,
    `others` ids and names of the instances that it can be kept apart from. `pays`: whether months may be paid in advance.
    """

    prepaid_months = forms.IntegerField(
        label="Months in advance",
        required=False,
        min_value=LEAST_MONTHS,
        max_value=MOST_MONTHS,
        help_text="Empty: it is paid by the hour.",
        widget=_amount(MOST_MONTHS, "1"),
    )
    prepaid_at_end = forms.ChoiceField(
        label="When they have ended",
        required=False,
        choices=[
            ("expire", "It is isolated, and deleted when its grace period ends"),
            ("renew", "It is renewed by itself"),
            ("postpaid", "It goes on, paid by the hour"),
        ],
        help_text="Of months that are paid in advance.",
    )
    whitelist = CidrsField(
        label="Who may connect",
        help_text="Addresses or blocks, one a line. Empty lets nobody in; 0.0.0.0/0 and ::/0 let everyone in.",
    )
    zones = forms.MultipleChoiceField(
        label="Zones",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Its brokers are in each zone that you choose. None chosen: wherever there is room. It cannot be moved later.",
    )
    apart_from = forms.MultipleChoiceField(
        label="Not on the same brokers as",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="So that what happens to the brokers of one does not happen to the other.",
    )

    def __init__(
        self,
        *args: Any,
        zones: Iterable[str] = (),
        others: Iterable[tuple[str, str]] = (),
        pays: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        if not pays:
            del self.fields["prepaid_months"], self.fields["prepaid_at_end"]
        for name, choices in (
            ("zones", [(zone, zone) for zone in zones]),
            ("apart_from", [(key, f"{title} ({key})") for key, title in others]),
        ):
            self.fields[name].choices = choices  # type: ignore[attr-defined]
            if not choices:
                del self.fields[name]

    @property
    def bought(self) -> dict[str, Any]:
        """As `admission.purchases` takes it."""
        found = {name: value for name, value in self.cleaned_data.items() if name != "once"}
        wished = {name: found.pop(name, []) for name in ("zones", "apart_from")}
        return {**found, "placement": {name: chosen for name, chosen in wished.items() if chosen}}

    def refuse(self, error: SluiceError) -> None:
        """A wish that nobody fulfils is said beside it."""
        beside = [
            (problem.field.removeprefix("placement."), problem.detail)
            for problem in error.errors
            if problem.field.startswith("placement.")
        ]
        if beside and all(name in self.fields for name, _ in beside):
            for name, detail in beside:
                self.add_error(name, sentence(detail))
        else:
            super().refuse(error)

    def clean(self) -> dict[str, Any]:
        """What is paid by the hour has no end."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        at_end = found.pop("prepaid_at_end", "")
        if found.get("prepaid_months") and at_end:
            found["prepaid_at_end"] = at_end
        return found


class WhitelistForm(ConsoleForm):
    """Addresses that may connect, one CIDR block a line."""

    refusals: ClassVar = {"add": "cidrs"}

    cidrs = CidrsField(
        label="Addresses and blocks",
        help_text="One a line, such as 10.1.0.0/16. Empty lets nobody in; 0.0.0.0/0 and ::/0 let everyone in.",
    )


class PlanForm(ConsoleForm):
    """How the organisation pays."""

    plan = forms.ChoiceField(label="Price plan")
    when = forms.ChoiceField(
        label="Takes effect",
        choices=[("now", "From the next full hour"), ("next_month", "From the next month")],
        help_text="Hours that have begun stay with the plan that they began under, and months with their currency.",
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput())

    def __init__(self, *args: Any, plans: Iterable[Plan], **options: Any) -> None:
        super().__init__(*args, **options)
        by_currency: dict[str, list[tuple[str, str]]] = {}
        for plan in plans:
            by_currency.setdefault(plan.currency, []).append((plan.name, worded(plan.title)))
        self.fields["plan"].choices = list(by_currency.items())  # type: ignore[attr-defined]


class DeletionForm(ConsoleForm):
    """Typing a name shows that it is meant."""

    confirmation = forms.CharField(
        label="Name", max_length=256, strip=True, widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"})
    )

    def __init__(self, *args: Any, name: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._name = name
        self.fields["confirmation"].label = f"Type “{name}” to confirm"

    def clean_confirmation(self) -> str:
        typed = str(self.cleaned_data["confirmation"])
        if typed != self._name.strip():
            raise forms.ValidationError("This is not the name. Nothing was deleted.")
        return typed


class InstanceDeletionForm(DeletionForm):
    """Of an instance that would be kept for a while, owners may say: at once."""

    at_once = forms.BooleanField(
        label="Delete its data at once, for good",
        required=False,
        help_text="Then it cannot be restored.",
    )
    refusals: ClassVar = {"name": "confirmation"}

    def __init__(self, *args: Any, asks_at_once: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if not asks_at_once:
            del self.fields["at_once"]
