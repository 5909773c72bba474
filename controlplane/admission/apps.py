"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig

from controlplane.admission import installed


class AdmissionConfig(AppConfig):
    """Found by Django through INSTALLED_APPS; settings that cannot be read stop the start."""

    name = "controlplane.admission"
    label = "admission"

    def ready(self) -> None:
        """A setting that makes no sense stops the process, with a sentence; the kinds of operation are made known."""
        from controlplane.admission import prepaid  # noqa: PLC0415  # it imports models

        prepaid.register()
        installed.rooms()
        installed.caps()
        installed.price_confirmed_above()
