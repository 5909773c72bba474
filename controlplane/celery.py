"""The Celery application: ``celery -A controlplane worker`` and ``celery -A controlplane beat``.

A message is only a wake-up. What there is to do stands in the database (core/operations.py), so that losing, doubling
or delaying a message changes when something happens and never what.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

app = Celery("sluice")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
