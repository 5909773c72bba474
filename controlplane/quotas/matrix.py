"""What every instance has on every broker at one moment, as a table of whole numbers: small enough to be drawn whole. Pure.

The master's documents say it in full and with words: of 500 instances on 50 brokers that is 25,000 places, and megabytes. A
matrix has eight bytes for each. Rows are instances, columns brokers; a place of which nothing is known (the instance leads
nothing there, or there is no limit) is UNKNOWN.

=========== ==================================================================================================
produce     bytes a second that producers bring, as the three below what there is on one broker
consume     bytes a second that consumers take
allocation  what is used of what the broker may carry of the limit, in thousandths; of both directions the larger
loop        what the broker works for the instance, microseconds a second; known where there is a limit of it
leaders     partitions of the instance that the broker leads
=========== ==================================================================================================
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PRODUCE, CONSUME, ALLOCATION, LOOP, LEADERS = MEASURES = ("produce", "consume", "allocation", "loop", "leaders")
UNKNOWN = -1
THOUSAND = 1000

Places = dict[int, dict[str, int]]
"""By broker and measure, of one instance."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """One measure. `cells` are signed numbers of 64 bits, row after row, in the order of this machine."""

    instances: tuple[str, ...]
    brokers: tuple[int, ...]
    cells: bytes

    def rows(self) -> list[list[int]]:
        """By instance, then broker."""
        found = array("q")
        found.frombytes(self.cells)
        width = len(self.brokers)
        return [found[at : at + width].tolist() for at in range(0, len(found), width)] if width else []

    def column(self, broker: int) -> dict[str, int]:
        """What is known of a broker, by instance."""
        if broker not in self.brokers:
            return {}
        found = array("q")
        found.frombytes(self.cells)
        values = found[self.brokers.index(broker) :: len(self.brokers)]
        return {name: value for name, value in zip(self.instances, values, strict=True) if value != UNKNOWN}

    def by_broker(self) -> dict[int, int]:
        """What is known, added up over instances."""
        sums = dict.fromkeys(self.brokers, 0)
        for row in self.rows():
            for broker, value in zip(self.brokers, row, strict=True):
                if value != UNKNOWN:
                    sums[broker] += value
        return sums


def matrices_of(documents: Iterable[Mapping[str, Any]]) -> dict[str, Matrix]:
    """By measure. An instance whose document is not legible is left out of all."""
    places: dict[str, Places] = {}
    for document in documents:
        try:
            places[document["instance"]] = _places_of(document)
        except (KeyError, TypeError, AttributeError, ValueError):
            continue
    names = tuple(sorted(places))
    brokers = tuple(sorted({broker for found in places.values() for broker in found}))
    return {
        measure: Matrix(
            names,
            brokers,
            array(
                "q",
                [
                    places[name][broker].get(measure, UNKNOWN) if broker in places[name] else UNKNOWN
                    for name in names
                    for broker in brokers
                ],
            ).tobytes(),
        )
        for measure in MEASURES
    }


def _places_of(document: Mapping[str, Any]) -> Places:
    found: Places = {}
    for direction in DIRECTIONS:
        for share in (document.get(direction) or {}).get("brokers", ()):
            place = found.setdefault(int(share["broker"]), {})
            flow, allocation = int(share["flow"]), share["allocation"]
            place[direction] = flow
            place[LEADERS] = max(place.get(LEADERS, 0), int(share["leaders"]))
            if allocation:
                place[ALLOCATION] = max(place.get(ALLOCATION, 0), flow * THOUSAND // int(allocation))
    for share in (document.get("broker_time") or {}).get("brokers", ()):
        found.setdefault(int(share["broker"]), {})[LOOP] = round(float(share["flow"]) * THOUSAND)
    return found
