"""What ACLs cost: microseconds of one core, in alternation, without sockets.

    python -m tests.benchmarks.acls [--rounds 20] [--requests 1000]

First a decision, and what reading and indexing takes after a change (on a broker both are done in slices). Then the way of a
frame to its answer's parts, as in `charging`, of an instance with 0, 1,000 and 5,000 ACLs: by the short cut, which compares
one integer, and by the handlers, which ask for each topic. The rules are for other topics, principals and addresses, and one of
them is for this client. "More" is beside no ACLs, the same way. var/reports/acls.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.instance import Authorizer, InstanceSpec, InstanceState, Limits
from quota.core.acls import AclBook
from tests.benchmarks.charging import a_door, a_way, fetch_frames, measured, produce_frames, table
from tests.benchmarks.report import keep, progress
from tests.dataplane.fetching.support import KEY, NAME

REPORT = Path("var/reports/acls.json")
SIZES = (0, 1_000, 5_000)
ME, HERE = "User:ANONYMOUS", "127.0.0.1"
CLOSED = Authorizer(allow_everyone_if_no_acl_found=False)
SPEC = InstanceSpec(f"ins-{KEY}", 1, InstanceState.RUNNING, Limits(None, None, None, None), (), ())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print tables, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.acls", description="What ACLs cost.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=1_000, help="of each kind in a round")
    options = parser.parse_args(arguments)
    decisions = {size: _decision(size) for size in SIZES[1:]}
    for size, row in decisions.items():
        print(f"{size:>6} ACLs: " + ", ".join(f"{name} {value:g}" for name, value in row.items()))
    figures = {}
    for how, short_cuts in (("short cut", True), ("handlers", False)):
        door = a_door()
        ways = {_name(size): a_way(door, _spec(size), short_cuts=short_cuts) for size in SIZES}
        for request, frames in (("fetch", fetch_frames()), ("produce", produce_frames())):
            figures[f"{request}, {how}"] = measured(request, frames, ways, options, progress(), base=_name(0))
    print(table(figures, base=_name(0)))
    keep(REPORT, {"options": vars(options), "decisions": decisions, "microseconds": figures})
    return 0


def _name(size: int) -> str:
    return f"{size} ACLs"


def _spec(size: int) -> InstanceSpec:
    return replace(SPEC, acls=AclSet(1, _acls(size)), authorizer=CLOSED) if size else SPEC


def _acls(size: int) -> tuple[Acl, ...]:
    """Half of them prefixes, a third with a network as host, one in ten a denial; the last is for this client."""
    patterns = (PatternType.LITERAL, PatternType.PREFIXED)
    others = [
        Acl(
            ResourceType.TOPIC,
            patterns[number % 2],
            f"topic-{number % 700}{'x' * (number % 9)}",
            f"User:user-{number % 50}",
            "*" if number % 3 else f"10.0.{number % 256}.0/24",
            tuple(AclOperation)[1 + number % 6],
            Permission.ALLOW if number % 10 else Permission.DENY,
        )
        for number in range(size - 1)
    ]
    own = Acl(ResourceType.TOPIC, PatternType.LITERAL, NAME, ME, "127.0.0.0/8", AclOperation.ALL, Permission.ALLOW)
    return (*others, own)


def _decision(size: int) -> dict[str, float]:
    acls = AclSet(1, _acls(size))
    data, book = acls.to_json(), AclBook(acls.items, CLOSED)

    def decide() -> None:
        book._decisions.clear()
        book.decide(ME, HERE, AclOperation.WRITE, ResourceType.TOPIC, NAME)

    def ask_again() -> None:
        book.decide(ME, HERE, AclOperation.WRITE, ResourceType.TOPIC, NAME)

    return {
        "a decision, us": _least(decide, 10_000) * 1e6,
        "the same again, us": _least(ask_again, 10_000) * 1e6,
        "reading, ms": _least(lambda: list(AclSet.reading(data)), 1) * 1e3,
        "indexing, ms": _least(lambda: list(AclBook.building(acls.items, CLOSED)), 1) * 1e3,
        "longest step, us": _longest_step(data, acls) * 1e6,
    }


def _least(work: Callable[[], object], times: int) -> float:
    """Seconds of one, the best of seven."""
    took = []
    for _ in range(7):
        began = time.thread_time()
        for _ in range(times):
            work()
        took.append((time.thread_time() - began) / times)
    return round(min(took), 9)


def _longest_step(data: bytes, acls: AclSet) -> float:
    """Seconds, the 99th percentile: the longest one of all is whatever else the machine did."""
    steps = []
    for work in (AclSet.reading(data), AclBook.building(acls.items, CLOSED)):
        began = time.thread_time()
        for _ in work:
            now = time.thread_time()
            steps.append(now - began)
            began = now
    return round(statistics.quantiles(steps, n=100)[-1], 9)


if __name__ == "__main__":
    sys.exit(main())
