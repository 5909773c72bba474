"""Django's entry to admission."""

from __future__ import annotations

from django.apps import AppConfig

from controlplane.admission import installed


class AdmissionConfig(AppConfig):
    """See the package."""

    name = "controlplane.admission"
    label = "admission"

    def ready(self) -> None:
        """A setting that makes no sense stops the process, with a sentence."""
        installed.rooms()
        installed.caps()
        installed.price_confirmed_above()
