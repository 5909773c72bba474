"""What hours cost, computed once more, with nothing of the product's but its price list as it was published.

An amount is quantity times price, rounded half up to the cent, once. A quantity of bytes is in GB; one of byte-seconds in GB
hours, to nine decimals. What is reserved costs by the hour, each hour that began while the instance was open. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

SIZE = {"bandwidth_mib_per_s": 20, "storage_gib": 100, "partitions": 60}
"""Of every instance: sizes on sale, with as many partitions as cost nothing by themselves."""
FINE = "fine"
"""A plan of this campaign's: in it a byte costs more than a cent, so that bills that are equal to the cent are so to the byte."""
PRICES: Mapping[str, Mapping[str, str]] = {
    "pro": {"bandwidth": "1.34", "disk": "0.25", "produced": "0", "consumed": "0", "stored": "0"},
    "traffic": {"produced": "0.60", "consumed": "0.25", "stored": "0.0025"},
    FINE: {"produced": "12345678.9", "consumed": "23456789.1", "stored": "345678912.3"},
}
RESERVED, USED = ("bandwidth", "disk"), ("produced", "consumed", "stored")
_UNITS = {"produced": 10**9, "consumed": 10**9, "stored": 3600 * 10**9}
_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
HOUR = timedelta(hours=1)


def bill(plan: str, month: str, opened: datetime, now: datetime, used: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """By item, what a month has cost so far; and `total`. `used`: by hour, in the order of USED."""
    prices = PRICES[plan]
    with localcontext(_EXACT):
        quantities = {item: Decimal(_hours_open(month, opened, now)) for item in RESERVED}
        of_month = [counters for hour, counters in used.items() if hour.startswith(month)]
        for item, counts in zip(USED, zip(*of_month, strict=True) if of_month else [()] * len(USED), strict=True):
            quantities[item] = (Decimal(sum(counts)) / _UNITS[item]).quantize(Decimal("1e-9"))
        amounts = {
            item: (quantities[item] * Decimal(price)).quantize(Decimal("0.01"))
            for item, price in prices.items()
            if quantities[item]
        }
        amounts["total"] = sum(amounts.values(), Decimal("0.00"))
    return {item: f"{amount:f}" for item, amount in amounts.items()}


def _hours_open(month: str, opened: datetime, now: datetime) -> int:
    """Hours of the month that began before now, from the one in which it opened."""
    hour = opened.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    count = 0
    while hour < now:
        count += f"{hour:%Y-%m}" == month
        hour += HOUR
    return count
