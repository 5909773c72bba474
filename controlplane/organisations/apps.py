"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class OrganisationsConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.organisations"
    label = "organisations"
