"""Which records of an audit are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms

from controlplane.access.serializers import LONGEST_PRINCIPAL
from controlplane.access.trail import AuditFilter
from controlplane.console.forms.base import ConsoleForm
from quota.contracts.audit import AuditKind

KINDS = [
    ("", "Everything"),
    (AuditKind.CONNECTION.value, "Connections"),
    (AuditKind.AUTHENTICATION.value, "Logins"),
    (AuditKind.DENIAL.value, "Denials"),
    (AuditKind.REQUEST.value, "Changes"),
]
OUTCOMES = [
    ("", "Any"),
    ("accepted", "Connection accepted"),
    ("refused", "Connection refused"),
    ("success", "Login succeeded"),
    ("failure", "Login failed"),
    ("TOPIC_AUTHORIZATION_FAILED", "Denied: a topic"),
    ("GROUP_AUTHORIZATION_FAILED", "Denied: a group"),
    ("CLUSTER_AUTHORIZATION_FAILED", "Denied: the cluster"),
    ("NONE", "Change carried out"),
]
"""Those that somebody looks for. Requests that failed have Kafka's other errors; REST finds them by name."""


def _moment(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label, required=False, widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    )


LONGEST_ACTOR, LONGEST_ACTION = 254, 64


class AuditForm(ConsoleForm):
    """A filter. What is empty takes anything."""

    refusals: ClassVar = {"from": "since"}

    kind = forms.ChoiceField(label="Show", choices=KINDS, required=False)
    outcome = forms.ChoiceField(label="Outcome", choices=OUTCOMES, required=False)
    principal = forms.CharField(
        label="Principal",
        required=False,
        max_length=LONGEST_PRINCIPAL,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "placeholder": "User:ann"}),
    )
    since = _moment("From, UTC")
    until = _moment("To, UTC")

    def wanted(self) -> AuditFilter:
        """As the trail takes it."""
        data = self.cleaned_data
        return AuditFilter(
            kind=AuditKind(data["kind"]) if data["kind"] else None,
            principal=data["principal"] or None,
            outcome=data["outcome"] or None,
            since=_utc(data["since"]),
            until=_utc(data["until"]),
        )


def _words(label: str, example: str, longest: int) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=longest,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "placeholder": example}),
    )


class LogForm(ConsoleForm):
    """The same of the audit log of an organisation, as REST takes it."""

    actor = _words("Actor", "ann@example.com", LONGEST_ACTOR)
    action = _words("Action", "topic.create", LONGEST_ACTION)
    since = _moment("From, UTC")
    until = _moment("To, UTC")

    def clean(self) -> dict[str, Any]:
        """A time does not end before it begins."""
        data: dict[str, Any] = super().clean() or {}
        since, until = data.get("since"), data.get("until")
        if since and until and until <= since:
            self.add_error("until", "This must be later than the beginning.")
        return data

    def wanted(self) -> dict[str, Any]:
        """As `audit_list` takes it."""
        data = self.cleaned_data
        return {
            "actor": data["actor"],
            "action": data["action"],
            "start": _utc(data["since"]),
            "end": _utc(data["until"]),
        }


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


class KeptForm(ConsoleForm):
    """What somebody has kept of the audit log of an organisation: the number and the hash of an entry."""

    after = forms.IntegerField(
        label="Number of an entry", required=False, min_value=1, max_value=2**63 - 1, help_text="Empty: the whole log."
    )
    hash = forms.RegexField(
        "^[0-9a-fA-F]{64}$",
        label="Its hash, as you have kept it",
        required=False,
        help_text="Shows whether the log up to that entry was written anew since. Check from the first entry on as well.",
        error_messages={"invalid": "Enter 64 hexadecimal digits."},
        widget=forms.TextInput(
            {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", "class": "mono"}
        ),
    )

    def kept(self) -> tuple[int, str]:
        """As `audit_sealing.verify` takes them."""
        return self.cleaned_data["after"] or 0, self.cleaned_data["hash"].lower()
