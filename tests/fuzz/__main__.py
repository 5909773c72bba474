"""Runs a fuzzer for some minutes, tells what it does, and writes its part of var/reports/fuzz.json.

    python -m tests.fuzz decoders|connection|proxy|sasl|tls [--minutes 30] [--planted BUG]

The corpus stays in var/fuzz/<target>/corpus and is where the next run begins. An input that fails is written beside it
(`crash-*`, `timeout-*`, `oom-*`); it runs again by `python tests/fuzz/fuzz_<target>.py FILE`. Exit status 1 when one was found.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz import planted
from tests.fuzz.bounded import HANGS_AFTER_S

HERE = Path(__file__).parent
REPORT = Path("var/reports/fuzz.json")
TARGETS = ("decoders", "connection", "proxy", "sasl", "tls")
_PROGRESS = re.compile(
    r"#(?P<runs>\d+)\s+(?P<what>\w+)\s+cov: (?P<coverage>\d+) ft: (?P<features>\d+) corp: (?P<corpus>\d+)\S*"
    r".*?exec/s: (?P<per_s>\d+) rss: (?P<rss_mib>\d+)Mb"
)
_TELL_EVERY_S = 10.0
_LONGEST_INPUT = {"decoders": 4096, "connection": 8192, "proxy": 1200, "sasl": 2000, "tls": 4000}


def main() -> int:
    """Seeds, the fuzzer as a process of its own, the report."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0, help="0: another one every time")
    parser.add_argument("--planted", help="a bug of `planted`: it must be found")
    options = parser.parse_args()
    folder = Path("var/fuzz") / (f"{options.target}-planted" if options.planted else options.target)
    corpus, seeds = folder / "corpus", folder / "seeds"
    for each in (corpus, seeds):
        each.mkdir(parents=True, exist_ok=True)
    before = set(folder.iterdir())
    importlib.import_module(f"tests.fuzz.fuzz_{options.target}").write_seeds(seeds)
    command = [
        sys.executable,
        str(HERE / f"fuzz_{options.target}.py"),
        str(corpus),
        str(seeds),
        f"-max_total_time={int(options.minutes * 60)}",
        f"-max_len={_LONGEST_INPUT[options.target]}",
        f"-timeout={HANGS_AFTER_S}",
        f"-report_slow_units={2 * HANGS_AFTER_S}",  # never: `bounded` tells them from those that wait for a core
        "-rss_limit_mb=3072",
        f"-artifact_prefix={folder}/",
        f"-seed={options.seed}",
        "-print_final_stats=1",
    ]
    began = time.monotonic()
    if options.planted:
        return _find(options.target, options.planted, command, began)
    first, last, tail, status = _watch(command, began)
    found = sorted(path.name for path in set(folder.iterdir()) - before if path.is_file())
    report = {
        "seconds": round(time.monotonic() - began),
        "asked_seconds": round(options.minutes * 60),
        "seeds": len(list(seeds.iterdir())),
        "with_the_first_corpus": first,
        "at_the_end": last,
        "status": status,
        "found": found,
        "clean": status == 0 and not found,
        "tail": [] if status == 0 else tail,
    }
    _write(options.target, report)
    print(f"{'clean' if report['clean'] else 'FAILED'}: {last.get('runs', 0)} inputs; {REPORT}")
    return 0 if report["clean"] else 1


def _find(target: str, bug: str, command: list[str], began: float) -> int:
    """Whether a planted bug is not found."""
    assert bug in planted.names(target), f"one of {', '.join(planted.names(target))}"
    _, last, tail, status = _watch([*command, f"--planted={bug}"], began)
    print(
        f"{'found' if status else 'NOT FOUND'}: {bug}, {time.monotonic() - began:.0f} s, {last.get('runs', 0)} inputs"
    )
    return 0 if status and any("Uncaught Python exception" in line for line in tail) else 1


def _write(target: str, report: dict[str, object]) -> None:
    """Beside what the report holds of the other target."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    reports = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    REPORT.write_text(json.dumps({**reports, target: report}, indent=1))


def _watch(command: list[str], began: float) -> tuple[dict[str, int], dict[str, int], list[str], int]:
    """The first and last figures, the last lines, the exit status; a line of progress every few seconds."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    tail: list[str] = []
    told = 0.0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            found = _PROGRESS.search(line)
            if found is None:
                tail = [*tail[-79:], line.rstrip()]
                continue
            last = {name: int(value) for name, value in found.groupdict().items() if name != "what"}
            if found["what"] == "INITED":
                first = last
            now = time.monotonic() - began
            if now - told >= _TELL_EVERY_S:
                told = now
                print(f"{now:7.0f} s  " + "  ".join(f"{name} {value}" for name, value in last.items()), flush=True)
        status = run.wait()
    if status:
        print("\n".join(tail))
    return first, last, tail, status


if __name__ == "__main__":
    sys.exit(main())
