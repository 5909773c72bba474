"""Runs the matrix: see the package. Exit status 1 on a difference that `accepted.tsv` beside this file does not list."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dataplane.protocol.messages.discovery import ApiVersionsRequest, FindCoordinatorRequest
from dataplane.protocol.messages.produce import InitProducerIdRequest
from tests.differential.accepted import reason_for, unused
from tests.differential.answers import different
from tests.differential.denials import CASES, SITUATIONS, Case, World
from tests.differential.denials.sides import Side, acls_for, apache_side, our_side
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "var" / "reports" / "denials.json"
ACCEPTED = Path(__file__).with_name("accepted.tsv")
Told = dict[str, object]


@dataclass(frozen=True)
class Cell:
    """One request in one situation, as both sides answered it."""

    api: str
    version: int
    case: str
    situation: str
    time: str  # which of the two times it was asked
    ours: Told
    apache: Told

    def differences(self) -> Iterator[tuple[str, str, str, str]]:
        """(path, ours, theirs, why it is meant, or nothing)."""
        for path, mine, others in different(self.ours, self.apache):
            said = self.case, f"{self.situation}, {self.time}", path, str(mine), str(others)
            yield path, str(mine), str(others), reason_for(self.api, self.version, *said, file=ACCEPTED)


def main() -> int:
    """The exit status."""
    arguments = _arguments()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    for module in ("records", "groups", "transactions", "administration"):
        import_module(f"tests.differential.denials.{module}")
    began = time.monotonic()
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="sluice-denials-") as folder, ExitStack() as stack:
        apache = stack.enter_context(apache_side(Path(folder) / "apache"))
        ours, cluster = stack.enter_context(our_side(Path(folder) / "ours"))
        versions = [_advertised(side) for side in (ours, apache)]
        for case in CASES:
            if arguments.api and case.key.name not in arguments.api.upper().split(","):
                continue
            found = list(_cells(case, _common(case, *versions), ours, apache))
            cells += found
            news = sum(not reason for cell in found for *_, reason in cell.differences())
            print(f"{time.monotonic() - began:6.1f} s  {case.key.name:32} {case.name:60} {news:4} unlisted", flush=True)
        problems = [*cluster.crashed(), *(["a traceback in our broker's log"] if cluster.complaints() else [])]
        if problems:
            REPORT.parent.mkdir(parents=True, exist_ok=True)
            cluster.keep_logs(REPORT.parent)
    return _say(cells, problems, show_all=arguments.show_all)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.denials")
    parser.add_argument("--api", default="", help="only these, as LIST_OFFSETS,FETCH")
    parser.add_argument("--show-all", action="store_true", help="accepted differences too")
    return parser.parse_args()


def _advertised(side: Side) -> dict[int, range]:
    wait_for(lambda: side.quietly(FindCoordinatorRequest("first"), 3).error_code == 0, 60, "a coordinator")
    wait_for(lambda: side.quietly(FindCoordinatorRequest("first", 1), 3).error_code == 0, 60, "one of transactions")
    wait_for(lambda: side.quietly(InitProducerIdRequest(None, 60_000), 1).error_code == 0, 60, "producer ids")
    keys = side.quietly(ApiVersionsRequest("denials", "1"), 3).api_keys
    return {key.api_key: range(key.min_version, key.max_version + 1) for key in keys}


def _common(case: Case, ours: dict[int, range], theirs: dict[int, range]) -> range:
    mine, others = ours.get(case.key, range(0)), theirs.get(case.key, range(0))
    return range(max(mine.start, others.start), min(mine.stop, others.stop))


def _cells(case: Case, versions: range, *sides: Side) -> Iterator[Cell]:
    if not versions:
        return
    for side in sides:
        side.set_acls(acl for situation in SITUATIONS for acl in acls_for(case, situation))
        if case.topics is not None:
            side.create_topics(World(v, situation).new(case.topics) for v in versions for situation in SITUATIONS)
    for version in versions:
        for situation in SITUATIONS:
            answers = [_asked(case, World(version, situation, side.topic_ids), side) for side in sides]
            for number, label in enumerate(("first", "again")):
                mine, others = (both[number] for both in answers)
                yield Cell(case.key.name, version, case.name, situation, label, mine, others)


def _asked(case: Case, world: World, side: Side) -> tuple[Told, Told]:
    user, request = world.situation, case.make(world)
    first = side.ask(user, request, world.version)
    if case.topics is not None and 0 in first.values():
        wait_for(lambda: side.gone(world.new(str(case.topics))), 20, "the topic to go")
    if user == "taken":
        side.take_acls(user)
    again = side.ask(user, request, world.version)
    if user == "taken":
        side.add_acls(acls_for(case, user))
    return first, again


def _say(cells: list[Cell], problems: list[str], *, show_all: bool) -> int:
    groups: dict[tuple[str, ...], list[int]] = {}
    listed: Counter[str] = Counter()
    unlisted: Counter[str] = Counter()
    for cell in cells:
        for path, mine, others, reason in cell.differences():
            (listed if reason else unlisted)[cell.api] += 1
            if show_all or not reason:
                step = f"{cell.situation}, {cell.time}"
                groups.setdefault((cell.api, cell.case, step, path, mine, others, reason), []).append(cell.version)
    for (api, case, step, path, mine, others, reason), versions in groups.items():
        mark = f"   ({reason})" if reason else ""
        print(
            f"{api} v{min(versions)}-{max(versions)} {case} / {step}\n    {path}: ours {mine} | apache {others}{mark}"
        )
    print(f"\n{'api':34}{'cells':>7}{'accepted':>10}{'unlisted':>10}   (answers; fields)")
    asked = Counter(cell.api for cell in cells)
    for api, count in asked.items():
        print(f"{api:34}{count:>7}{listed[api]:>10}{unlisted[api]:>10}")
    for row in unused(asked, ACCEPTED):
        print(f"accepted, and not seen: {' | '.join(row[:-1])}")
    for problem in problems:
        print(problem)
    print(f"{len(cells)} answers compared; {listed.total()} accepted differences, {unlisted.total()} unlisted")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps([asdict(cell) for cell in cells], indent=1, default=str))
    return 1 if problems or unlisted.total() else 0


if __name__ == "__main__":
    sys.exit(main())
