"""What the installation's settings say of token issuers. The list is read when the process starts, so that a mistake stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.env import EnvironmentProblem
from controlplane.token_issuers.allowed import places_of

if TYPE_CHECKING:
    from controlplane.token_issuers.allowed import Place


def places() -> tuple[Place, ...]:
    """From where keys may be fetched; empty: no instance can have token issuers. Raises EnvironmentProblem."""
    try:
        return places_of(settings.ENVIRONMENT.token_issuer_hosts)
    except ValueError as error:
        raise EnvironmentProblem(f"SLUICE_TOKEN_ISSUER_HOSTS: {error}") from error


def fetch_every_s() -> int:
    """How often keys are fetched anew."""
    every_s: int = settings.ENVIRONMENT.token_keys_every_s
    return every_s
