"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class SsoConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.sso"
    label = "sso"
