"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class BudgetsConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.budgets"
    label = "budgets"
