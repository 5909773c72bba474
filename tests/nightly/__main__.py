"""`make nightly`: simulation, kills, crash points, fuzz, metering, long tests, conformance, differential, leaks, mutation.

    python -m tests.nightly [part …] [--minutes 110] [--again PART]

`--minutes` scales what can be more or less: seeds, rounds, inputs, mutants. The other parts are what they are.
A part that was finished on this commit is not run again, unless `--again` names it. A table at the end, the same in
var/reports/nightly.json, what each part printed in var/nightly. Exit status 1 unless every part that was chosen passed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.nightly import code
from tests.nightly.night import FILE, Night
from tests.nightly.parts import REPORTS, parts

USUAL_MINUTES = 110
LOGS = Path("var/nightly")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    names = [part.name for part in parts(0, 1)]
    parser = argparse.ArgumentParser(prog="make nightly", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*names, []], metavar="part", help=", ".join(names))
    parser.add_argument("--minutes", type=float, default=USUAL_MINUTES, help="of all parts together, about")
    parser.add_argument("--again", action="append", default=[], choices=names, metavar="part", help="though it was run")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began, state = time.monotonic(), code.state()

    def say(text: str) -> None:
        print(f"{(time.monotonic() - began) / 60:6.1f} min  {text}", flush=True)

    chosen = [
        part
        for part in parts(code.number_of(state), options.minutes / USUAL_MINUTES)
        if part.name in (options.parts or names)
    ]
    night = Night(state, chosen, REPORTS, LOGS, say)
    try:
        night.run(options.again)
    except KeyboardInterrupt:
        say("stopped; the same command goes on from here")
    print(f"\ncommit {state}\n{night.table()}\nfigures: {REPORTS / FILE}, logs: {LOGS}")
    return 0 if night.has_passed else 1


if __name__ == "__main__":
    sys.exit(main())
