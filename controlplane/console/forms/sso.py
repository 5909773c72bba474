"""Single sign-on: what owners set, and by whose provider somebody signs in."""

from __future__ import annotations

from typing import ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm

_PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}


class OrganisationIdForm(ConsoleForm):
    """Whose provider it is."""

    refusals: ClassVar = {"too_many_attempts": "organisation", "sso_away": "organisation"}

    organisation = forms.CharField(
        label="Id of your organisation",
        max_length=64,
        help_text="Such as org-8zk2m4x0q1ab. Your colleagues have a link with it.",
        widget=forms.TextInput(_PLAIN | {"class": "mono", "autofocus": True}),
    )


class ProviderForm(ConsoleForm):
    """A provider of an organisation."""

    refusals: ClassVar = {"sso_off": "issuer"}

    label = forms.CharField(
        label="Name of the provider", max_length=128, help_text="As members know it.", widget=forms.TextInput(_PLAIN)
    )
    issuer = forms.CharField(
        label="Issuer",
        max_length=255,
        help_text="Its address, to the letter as it names itself.",
        widget=forms.TextInput(_PLAIN | {"class": "mono"}),
    )
    client_id = forms.CharField(label="Client id", max_length=255, widget=forms.TextInput(_PLAIN | {"class": "mono"}))
    client_secret = forms.CharField(
        label="Client secret",
        max_length=1024,
        required=False,
        strip=False,
        help_text="Is never shown again. Empty: the one of before.",
        widget=forms.PasswordInput({"autocomplete": "off"}),
    )
