"""What a run of mutants has shown: for people, and in var/reports/mutation.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tests.mutation.survivors import reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.mutation.survivors import Change

ENOUGH = 0.9
"""Of mutants have to be caught: of all that were tried together, and where all were tried of each area."""


@dataclass(frozen=True)
class Shown:
    """Of one area. `wanted`: the sample; `tried`: as far as it got."""

    mutants: int
    wanted: int
    tried: int
    survived: tuple[Change, ...]

    @property
    def caught(self) -> int:
        return self.tried - len(self.survived)

    @property
    def share(self) -> float:
        return self.caught / self.tried if self.tried else 1.0


def summary(shown: Mapping[str, Shown], reasons: Mapping[Change, str], gone: Sequence[Change]) -> dict[str, Any]:
    """As it is written. `complete`: no mutant of the sample was left out for want of time."""
    survived = [change for area in shown.values() for change in area.survived]
    new = [change for change in survived if reason(change, reasons) is None]
    tried, caught = sum(area.tried for area in shown.values()), sum(area.caught for area in shown.values())
    share = caught / tried if tried else 1.0
    shares = [share, *(area.share for area in shown.values() if area.tried == area.mutants)]
    return {
        "areas": {
            name: {
                "mutants": area.mutants,
                "tried": area.tried,
                "caught": area.caught,
                "listed": sum(reason(change, reasons) is not None for change in area.survived),
                "caught_percent": round(100 * area.share, 1),
            }
            for name, area in shown.items()
        },
        "mutants": sum(area.mutants for area in shown.values()),
        "tried": tried,
        "caught": caught,
        "caught_percent": round(100 * share, 1),
        "complete": all(area.tried == area.wanted for area in shown.values()),
        "new": [asdict(change) for change in new],
        "gone": [asdict(change) for change in gone],
        "clean": not new and not gone and min(shares) >= ENOUGH,
    }


def table(figures: Mapping[str, Any]) -> str:
    """For the terminal: the areas, then every survivor that nobody has read, and every row that has outlived its mutant."""
    heads = ("mutants", "tried", "caught", "listed", "caught_percent")
    lines = [f"{'':<12}" + "".join(f"{head:>16}" for head in heads)]
    for name, row in figures["areas"].items():
        lines.append(f"{name:<12}" + "".join(f"{row[head]:>16}" for head in heads))
    lines += [f"SURVIVED {each['function']}\n    - {each['was']}\n    + {each['now']}" for each in figures["new"]]
    lines += [f"listed, and survives no more: {each['function']}: {each['now']}" for each in figures["gone"]]
    lines.append(
        f"{figures['caught']} of {figures['tried']} mutants caught ({figures['caught_percent']} %),"
        f" {len(figures['new'])} survivors that are not listed; there are {figures['mutants']} in all"
        + ("" if figures["complete"] else "; THERE WAS NO TIME FOR ALL OF THE SAMPLE: the same again goes on")
    )
    return "\n".join(lines)
