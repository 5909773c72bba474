"""Settings of an installation that differ from test to test, and an operator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from controlplane.accounts.models import User
from controlplane.clusters.models import PhysicalCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django.fixtures import SettingsWrapper


@pytest.fixture
def installed(settings: SettingsWrapper) -> Callable[..., None]:
    """`installed(caps={…}, room={…}, price_confirmed_above=…)`: what is left out stays as it was."""

    def install(*, caps=None, room=None, **members):
        environment = settings.ENVIRONMENT
        settings.ENVIRONMENT = replace(
            environment,
            caps=",".join(filter(None, [environment.caps, *(f"{name}={cap}" for name, cap in (caps or {}).items())])),
            broker_room=",".join(
                filter(
                    None,
                    [environment.broker_room, *(f"{name}={each[0]}*{each[1]}" for name, each in (room or {}).items())],
                )
            ),
            **members,
        )

    return install


@pytest.fixture
def operator(charlie):
    """An operator of the service, who is in another organisation."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    return charlie


@pytest.fixture
def cluster(instance) -> PhysicalCluster:
    """Alice's instance's."""
    return instance.cluster
