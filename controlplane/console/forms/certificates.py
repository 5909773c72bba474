"""Certificates of a TLS route: one that the tenant brings, and whose certificates its clients may show."""

from __future__ import annotations

from typing import Any

from django import forms

from controlplane.console.forms.base import ConsoleForm
from quota.contracts.certificates import LARGEST_PEM


class _Unshown(forms.Textarea):
    """What was typed into it is in no answer: a private key is sent once."""

    def format_value(self, value: Any) -> str:  # noqa: ARG002  # Django's signature
        return ""


def _pem(label: str, widget: type[forms.Textarea] = forms.Textarea, **options: Any) -> forms.CharField:
    typing = {"rows": 6, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off", "class": "mono"}
    return forms.CharField(label=label, max_length=LARGEST_PEM, widget=widget(typing), **options)


class BroughtForm(ConsoleForm):
    """A certificate of the tenant's own."""

    chain = _pem("Certificates", help_text="PEM: the route's own first, then those between it and its authority.")
    key = _pem("Private key", _Unshown, help_text="PEM, not encrypted. It is never shown again.")


class ClientCaForm(ConsoleForm):
    """The authorities of clients."""

    client_ca = _pem(
        "Authorities of clients",
        required=False,
        help_text="PEM, one or more. A client is let in by a certificate that one of them has issued. Empty: by nobody's.",
    )
