"""Which mutants are known to survive, and why: the rows of survivors.tsv.

    function    the line as it is    the line as the mutant has it    why no test fails on it

A mutant's name has a number that moves when its function is edited; the lines do not, unless what they say has changed:
then somebody has to look again. Several lines are joined by " / ". A row with "*" for both lines is of a whole function.

A mutant is chosen when all modules have been imported. What is computed at import, of the code or of a test, is therefore
always right: no test can see a mutant there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILE = Path(__file__).with_name("survivors.tsv")


@dataclass(frozen=True, order=True)
class Change:
    """What a mutant has in place of what there is."""

    function: str
    was: str
    now: str


def change_of(name: str, difference: str) -> Change:
    """From mutmut's name of a mutant and the unified diff of its function."""
    lines = difference.splitlines()

    def begun_with(sign: str) -> str:
        return " / ".join(line[1:].strip() for line in lines if line.startswith(sign) and line[:3] != sign * 3)

    return Change(function_of(name), begun_with("-"), begun_with("+"))


def function_of(name: str) -> str:
    """As "package.module.Class.method" of a mutant such as "package.module.xǁClassǁmethod__mutmut_7"."""
    module, _, mangled = name.rpartition("__mutmut_")[0].rpartition(".")
    function = mangled[2:].replace("ǁ", ".") if mangled.startswith("xǁ") else mangled.removeprefix("x_")
    return f"{module}.{function}"


def listed(path: Path = FILE) -> dict[Change, str]:
    """The reasons of those that have one. Lines that begin with # are comments."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {Change(function, was, now): why for function, was, now, why in rows}


def reason(change: Change, reasons: Mapping[Change, str]) -> str | None:
    """Why it may survive, if somebody has said so."""
    return reasons.get(change) or reasons.get(Change(change.function, "*", "*"))


def gone(reasons: Mapping[Change, str], survived: Iterable[Change]) -> list[Change]:
    """Rows that nothing survives for any more, where everything was tried: they go."""
    seen = set(survived)
    functions = {change.function for change in seen}
    return sorted(
        row for row in reasons if row not in seen and not (row.was == "*" == row.now and row.function in functions)
    )
