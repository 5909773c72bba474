"""A route's members as people choose them. What goes together is the services' to say."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.forms.base import CidrsField, ConsoleForm, OnceForm
from controlplane.core.whitelist import whitelist_parse
from controlplane.routes.validation import CLIENT_CERTIFICATES, DEFAULTS, MECHANISMS, MOST_CONNECTIONS, SECURITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.instances.models import Route

SECURITY_WORDS: Mapping[str, str] = {
    "plaintext": "Nobody logs in, bytes in clear (PLAINTEXT)",
    "sasl_plaintext": "Clients log in, bytes in clear (SASL_PLAINTEXT)",
    "ssl": "Nobody logs in by password, inside TLS (SSL)",
    "sasl_ssl": "Clients log in, inside TLS (SASL_SSL)",
}
CERTIFICATE_WORDS: Mapping[str, str] = {
    "none": "are not asked for",
    "requested": "may be shown",
    "required": "must be shown",
}
_NO_MEMBERS = ("once", "scope", "cidrs")


def _limit(label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=0,
        max_value=MOST_CONNECTIONS,
        help_text=help_text,
        widget=forms.NumberInput({"min": "0", "step": "1", "inputmode": "numeric"}),
    )


class RouteForm(OnceForm):
    """`members` is what a new route has, `changes` what differs from a route that is there."""

    refusals: ClassVar = {"whitelist": "cidrs", "public_route_limit": "public"}

    security = forms.ChoiceField(label="Security", choices=[(each, SECURITY_WORDS[each]) for each in SECURITIES])
    mechanisms = forms.MultipleChoiceField(
        label="How clients log in",
        choices=[(each, each) for each in MECHANISMS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="One or more where clients log in, none elsewhere.",
    )
    allow_plain_in_clear = forms.BooleanField(
        label="Allow PLAIN and OAUTHBEARER without TLS",
        required=False,
        help_text="Passwords and tokens are seen by whoever listens on the way.",
    )
    client_certificates = forms.ChoiceField(
        label="Clients' certificates",
        choices=[(each, CERTIFICATE_WORDS[each]) for each in CLIENT_CERTIFICATES],
        help_text="Where there is TLS. The route opens when its page Certificates says whose they may be.",
    )
    principal_mapping = forms.CharField(
        label="Names in certificates",
        required=False,
        max_length=4000,
        widget=forms.Textarea({"rows": 3, "spellcheck": "false", "autocomplete": "off", "class": "mono"}),
        help_text="Rules as Kafka's ssl.principal.mapping.rules, one a line. Empty: the whole subject is the name.",
    )
    scope = forms.ChoiceField(
        label="Who may connect",
        choices=[("instance", "Whoever is on the instance's list"), ("own", "Only these, among them")],
        widget=forms.RadioSelect,
    )
    cidrs = CidrsField(label="Addresses and blocks", help_text="One a line. Empty lets nobody in by this route.")
    connections = _limit("Connections", "On each broker. Empty: no other limit than the instance's.")
    connections_per_address = _limit("Connections of one address", "On each broker, likewise.")
    advertised_host = forms.CharField(
        label="Advertised host",
        required=False,
        max_length=253,
        widget=forms.TextInput({"spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}),
        help_text="What clients are told to connect to, if a name or a load balancer stands before the brokers.",
    )
    proxy_protocol = forms.BooleanField(
        label="Behind a load balancer that sends PROXY headers",
        required=False,
        help_text="Connections without one are closed.",
    )
    public = forms.BooleanField(label="Public", required=False, help_text="One route of an instance may be.")
    closes_at = forms.DateTimeField(
        label="Closes at",
        required=False,
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="UTC. From then on it is closed, with its connections. Empty: it stays.",
    )

    def __init__(self, data: Any = None, *, route: Route | None = None) -> None:
        self._now = DEFAULTS if route is None else {name: getattr(route, name) for name in DEFAULTS}
        self.state = _digest(self._now)
        """Of the route as this form sees it; a form that is sent says which one its reader saw."""
        super().__init__(data, initial=_initial(self._now))

    def clean(self) -> dict[str, Any]:
        """All fields are sent: those of a route that others have changed meanwhile would undo it unseen."""
        if self.data.get("state", self.state) != self.state:
            raise forms.ValidationError(
                "Somebody else has changed this route since you opened the page. What stands below would replace that change: "
                "open the page again, or save once more if it is meant."
            )
        return self.cleaned_data

    def members(self) -> dict[str, Any]:
        """What the service takes, of a route that is new."""
        found = {name: value for name, value in self.cleaned_data.items() if name not in _NO_MEMBERS}
        found["principal_mapping"] = [line.strip() for line in found["principal_mapping"].splitlines() if line.strip()]
        own = self.cleaned_data["scope"] == "own"
        found["whitelist"] = whitelist_parse(self.cleaned_data["cidrs"], field="cidrs") if own else None
        return found

    def changes(self) -> dict[str, Any]:
        """Those that differ. The field of the end has no seconds, and boxes have no order."""
        now = {**self._now, "mechanisms": set(self._now["mechanisms"])}
        if now["closes_at"] is not None:
            now["closes_at"] = now["closes_at"].replace(second=0, microsecond=0)
        asked = self.members()
        seen = {**asked, "mechanisms": set(asked["mechanisms"])}
        return {name: value for name, value in asked.items() if seen[name] != now[name]}


def _digest(members: Mapping[str, Any]) -> str:
    return hashlib.sha256(repr([members[name] for name in DEFAULTS]).encode()).hexdigest()[:16]


def _initial(now: Mapping[str, Any]) -> dict[str, Any]:
    own = now["whitelist"] is not None
    return {
        **now,
        "principal_mapping": "\n".join(now["principal_mapping"]),
        "scope": "own" if own else "instance",
        "cidrs": now["whitelist"] or [],
    }


class RouteRemovalForm(ConsoleForm):
    """That it is meant."""

    confirmed = forms.BooleanField(label="Clients that use it may be cut off")
