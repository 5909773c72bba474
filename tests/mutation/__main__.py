"""`make mutation`: mutants of the pure packages, and whether their tests catch them.

    python -m tests.mutation [area …] [--sample 800] [--seed N] [--minutes 20]
    python -m tests.mutation --sample 0        all of them

A sample is drawn from all areas alike, by a seed that follows from the commit: each commit is tried with others. Stopped, or
out of time, the same again goes on; another state of the code begins anew. Figures: var/reports/mutation.json. Exit status 1
when a mutant survived that survivors.tsv does not name, or too few were caught; 2 when there was no time for the sample.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.mutation.areas import AREAS
from tests.mutation.report import Shown, summary, table
from tests.mutation.survivors import change_of, gone, listed
from tests.mutation.work import Work
from tests.nightly import code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = Path("var/mutation").absolute()
REPORT = Path("var/reports/mutation.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    options = _parse(arguments)
    began, state = time.monotonic(), code.state()
    seed = code.number_of(state) if options.seed is None else options.seed
    works = {name: Work(FOLDER / name, AREAS[name], state) for name in options.areas or AREAS}
    print("making mutants", flush=True)
    mutants = {name: work.mutants() for name, work in works.items()}
    wanted = sample(mutants, options.sample, seed)
    for name, work in works.items():
        left = [mutant for mutant in wanted[name] if mutant not in work.results()]
        if left and time.monotonic() < began + options.minutes * 60:
            print(f"{name}: {len(left)} of {len(wanted[name])} mutants to try", flush=True)
            work.run(left, began + options.minutes * 60, _teller(name, len(left)))
    shown = {name: _shown(works[name], mutants[name], wanted[name]) for name in works}
    reasons = listed()
    everything = options.sample == 0 and not options.areas and all(s.tried == s.mutants for s in shown.values())
    survived = [change for area in shown.values() for change in area.survived]
    figures = summary(shown, reasons, gone(reasons, survived) if everything else [])
    print(table(figures))
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    about = {"commit": state, "seed": seed, "sample": options.sample, "seconds": round(time.monotonic() - began)}
    REPORT.write_text(json.dumps(about | figures, indent=1, ensure_ascii=False) + "\n")
    return 1 if not figures["clean"] else 0 if figures["complete"] else 2


def sample(mutants: Mapping[str, Sequence[str]], size: int, seed: int) -> dict[str, list[str]]:
    """So many of all together, of each area in proportion; 0: all of them. A larger sample has the smaller one in it."""
    whole = sum(map(len, mutants.values()))
    found = {}
    for area, names in mutants.items():
        shuffled = sorted(names)
        random.Random(f"{seed} {area}").shuffle(shuffled)
        found[area] = shuffled[: -(-size * len(names) // whole)] if size else shuffled
    return found


def _shown(work: Work, mutants: list[str], wanted: list[str]) -> Shown:
    results = work.results()
    tried = [name for name in wanted if name in results]
    differences = work.differences([name for name in tried if not results[name]])
    survived = tuple(sorted(change_of(name, difference) for name, difference in differences.items()))
    return Shown(len(mutants), len(wanted), len(tried), survived)


def _teller(area: str, left: int):
    began = time.monotonic()
    said = [began]

    def tell(done: int) -> None:
        now = time.monotonic()
        if now - said[0] > 20:
            said[0] = now
            print(f"{now - began:7.1f} s  {area}: {done} of {left} tried", flush=True)

    return tell


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("areas", nargs="*", choices=[*AREAS, []], metavar="area", help=", ".join(AREAS))
    parser.add_argument("--sample", type=int, default=800, help="how many; 0: all")
    parser.add_argument("--seed", type=int, help="which; without it that of the commit")
    parser.add_argument("--minutes", type=float, default=600)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
