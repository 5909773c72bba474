"""Throttle rules as people type them: names one a line, limits in MiB/s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm, ruled
from controlplane.console.rules import EACH, as_lines, from_lines
from controlplane.throttle_rules.serializers import ThrottleRuleSerializer
from controlplane.throttle_rules.services import MOST_MIB_PER_S
from quota.contracts.rules import LONGEST_NAME, RuleKind

if TYPE_CHECKING:
    from quota.contracts.rules import ThrottleRule

LONGEST_LIST = 300_000
"""A thousand names of 255 characters and their line ends."""
KINDS = {RuleKind.TOPIC: "Topics", RuleKind.CLIENT: "Clients", RuleKind.GROUP: "Consumer groups"}
"""What rules are for."""
_EACH = f"One a line. {EACH} alone: each one that no other rule names. Each of them has the limit for itself."


class NamesField(forms.CharField):
    """Names one a line, as a list. `EACH` is None in it where the field takes that, and else a name like any other."""

    widget = forms.Textarea

    def __init__(self, *, takes_each: bool = False, **options: Any) -> None:
        super().__init__(max_length=LONGEST_LIST, **options)
        self.takes_each = takes_each
        self.widget.attrs |= {"rows": 4, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        self.widget.attrs["class"] = "mono"

    def clean(self, value: Any) -> list[str | None]:
        return from_lines(super().clean(value), takes_each=self.takes_each)


def _limit_problem(mib_per_s: float) -> str | None:
    if 0 < mib_per_s <= MOST_MIB_PER_S:
        return None
    return f"must be more than 0 and at most {MOST_MIB_PER_S:,}. Leave it empty for no limit"


def _limit(label: str) -> forms.FloatField:
    return forms.FloatField(
        label=label,
        required=False,
        validators=[ruled(_limit_problem)],
        help_text="Over all brokers together. Empty: no limit.",
        widget=forms.NumberInput({"step": "any", "min": "0", "max": MOST_MIB_PER_S}),
    )


def _name(label: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=LONGEST_NAME,
        strip=False,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )


class RulesForm(ConsoleForm):
    """A filter of the list. What is empty takes anything."""

    kind = forms.ChoiceField(label="For", required=False, choices=[("", "Everything"), *KINDS.items()])
    topic = _name("Topic")
    user = _name("User")
    client = _name("Client id")
    group = _name("Group")


class ThrottleRuleForm(ConsoleForm):
    """Of one kind: what it names, and its limits."""

    units: ClassVar = {"produce_mib_per_s": "MiB/s", "consume_mib_per_s": "MiB/s"}
    names: ClassVar[tuple[str, ...]] = ()

    produce_mib_per_s = _limit("Produce limit")
    consume_mib_per_s = _limit("Consume limit")

    @classmethod
    def of(cls, rule: ThrottleRule) -> dict[str, Any] | None:
        """What stands in the form of a rule; None where its names cannot be typed."""
        known = ThrottleRuleSerializer(rule).data
        lists = {name: as_lines(known[name], takes_each=cls.base_fields[name].takes_each) for name in cls.names}
        limits = {name: known[name] for name in cls.units if name in cls.base_fields}
        return None if None in lists.values() else {**lists, **limits}

    def rows(self) -> list[tuple[forms.BoundField, str]]:
        """Each field, with its unit."""
        return [(bound, self.units.get(bound.name, "")) for bound in self]

    def entry(self, name: str, index: int) -> str:
        """The name itself: its line has another number where lines before it are empty."""
        return str(self.cleaned_data[name][index])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        limits = [name for name in self.units if name in self.fields]
        if not any(name in self.errors or cleaned[name] is not None for name in limits):
            self.add_error(limits[0], "Give a limit.")
        return cleaned


class TopicRuleForm(ThrottleRuleForm):
    """What is produced to topics, and consumed from them."""

    names: ClassVar = ("topics",)
    field_order: ClassVar = names

    topics = NamesField(label="Topics", help_text="One a line. The limit is for all of them together.")


class ClientRuleForm(ThrottleRuleForm):
    """What clients move, by their user, their client id, or both."""

    names: ClassVar = ("users", "clients")
    field_order: ClassVar = names

    users = NamesField(label="Users", required=False, takes_each=True, help_text=_EACH)
    clients = NamesField(label="Client ids", required=False, takes_each=True, help_text=_EACH)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not any(cleaned.get(name) or name in self.errors for name in self.names):
            self.add_error("users", "Name users, client ids, or both.")
        return cleaned


class GroupRuleForm(ThrottleRuleForm):
    """What the members of consumer groups consume."""

    names: ClassVar = ("groups",)
    field_order: ClassVar = names

    produce_mib_per_s = None  # groups do not produce
    groups = NamesField(label="Consumer groups", help_text="One a line. The limit is for all of them together.")


FORMS: dict[RuleKind, type[ThrottleRuleForm]] = {
    RuleKind.TOPIC: TopicRuleForm,
    RuleKind.CLIENT: ClientRuleForm,
    RuleKind.GROUP: GroupRuleForm,
}
