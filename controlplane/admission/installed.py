"""What the installation's settings say of room, caps and prices. Read when the process starts, so that a mistake stops it."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.admission.rules import (
    DEFAULT_CAPS,
    DEFAULT_CONFIRMED_ABOVE,
    DEFAULT_CURRENCY,
    DEFAULT_ROOM,
    MOST,
    Room,
)
from controlplane.env import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterable


def rooms() -> dict[str, Room]:
    """Every one of DEFAULT_ROOM. Raises EnvironmentProblem."""
    found, variable = dict(DEFAULT_ROOM), "SLUICE_BROKER_ROOM"
    for name, text in _named(variable, settings.ENVIRONMENT.broker_room, DEFAULT_ROOM):
        per_broker, star, overcommit = text.partition("*")
        factor = _amount(variable, overcommit) if star else found[name].overcommit
        found[name] = Room(_amount(variable, per_broker), factor)
    return found


def caps() -> dict[str, Decimal]:
    """Every one of DEFAULT_CAPS. Raises EnvironmentProblem."""
    named = _named("SLUICE_CAPS", settings.ENVIRONMENT.caps, DEFAULT_CAPS)
    return dict(DEFAULT_CAPS) | {name: Decimal(str(_amount("SLUICE_CAPS", text))) for name, text in named}


def price_confirmed_above(currency: str = DEFAULT_CURRENCY) -> Decimal:
    """A month, in a currency: ``5000`` is in the default one, ``CNY=5000,USD=700`` names them. Raises EnvironmentProblem."""
    variable, value = "SLUICE_PRICE_CONFIRMED_ABOVE", str(settings.ENVIRONMENT.price_confirmed_above)
    named = value if "=" in value else f"{DEFAULT_CURRENCY}={value}"
    found = dict(DEFAULT_CONFIRMED_ABOVE)
    for name, text in _named(variable, named, DEFAULT_CONFIRMED_ABOVE):
        found[name] = Decimal(str(_amount(variable, text))).quantize(Decimal("0.01"))
    return found.get(currency, Decimal("0.00"))


def _named(variable: str, value: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """``name=text,name=text``, the names among those that are known."""
    found = []
    for entry in filter(None, (entry.strip() for entry in value.split(","))):
        name, equals, text = entry.partition("=")
        if not equals or name.strip() not in known:
            raise EnvironmentProblem(f"{variable} takes {', '.join(known)}, each as NAME=NUMBER, not {entry!r}")
        found.append((name.strip(), text))
    return found


def _amount(variable: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST:  # NaN is refused, too
        raise EnvironmentProblem(f"{variable} takes numbers of at least 0 and at most {MOST}, not {text.strip()!r}")
    return value
