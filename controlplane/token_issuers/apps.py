"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig

from controlplane.token_issuers import installed


class TokenIssuersConfig(AppConfig):
    """Found by Django through INSTALLED_APPS; a list of hosts that cannot be read stops the start."""

    name = "controlplane.token_issuers"
    label = "token_issuers"

    def ready(self) -> None:
        """A setting that makes no sense stops the process, with a sentence."""
        installed.places()
