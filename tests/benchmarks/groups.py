"""How long a large group holds its coordinator's loop, and what ten thousand small ones weigh.

    python -m tests.benchmarks.groups [--members 500,1000,4000] [--groups 10000]

A coordinator over a log in memory: what members say is handled as it is on a broker, without the bytes of requests and answers.
Each turn of its loop is timed, in time of the processor, and slices see that clock. What other tenants of the broker would
wait for is the longest turn. var/reports/groups.json.

    start      all join a new group
    sync       all ask for their assignment, the leader with it
    newcomer   one more joins, all join again, and sync
    leave      half of them leave in one request, in the portions of its handler; the others join again
    silence    no member says anything any more, and their sessions end
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dataplane.groups.classic.events import Join, JoinResult, Leave, Sync
from dataplane.groups.commits import Commit, Offset
from dataplane.handlers.groups.membership import LEAVE_AT_ONCE
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future
from tests.benchmarks.report import Say, keep, progress
from tests.dataplane.groups.support import World

REPORT = Path("var/reports/groups.json")
SESSION_S, DELAY_S = 10, 3
PARTITIONS = 10
"""Of each small group's topic."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.groups", description="Large groups, many groups.")
    parser.add_argument("--members", default="500,1000,4000", help="sizes of groups, with commas between them")
    parser.add_argument("--groups", type=int, default=10_000)
    options = parser.parse_args(arguments)
    say = progress()
    say(f"{'members':>9}  {'what':10}{'longest ms':>12}{'all ms':>10}{'turns':>8}")
    rows = [row for size in options.members.split(",") for row in measure(int(size), say)]
    memory = weigh(options.groups, say)
    keep(REPORT, {"rows": rows, "memory": memory})
    return 0


def measure(members: int, say: Say) -> list[dict[str, Any]]:
    """One row for each thing that a group of so many does."""
    group = LargeGroup(members)
    rows = []
    for name in ("start", "sync", "newcomer", "leave", "silence"):
        row = {"members": members, "what": name, **group.timed(getattr(group, name))}
        rows.append(row)
        say(f"{members:9}  {name:10}{row['longest_ms']:12.1f}{row['all_ms']:10.0f}{row['turns']:8}")
    return rows


class LargeGroup:
    """A group, and all of its members."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._world = World(group_initial_rebalance_delay_ms=DELAY_S * 1000)
        self._world.coordinator._runtime._gradual._clock = time.thread_time
        self._members: list[str] = []
        self._turns: list[float] = []
        turn = self._world.loop._turn

        def timed() -> None:
            begin = time.thread_time()
            turn()
            self._turns.append(time.thread_time() - begin)

        self._world.loop._turn = timed  # type: ignore[method-assign]

    def timed(self, what: Callable[[], None]) -> dict[str, Any]:
        """What the turns took."""
        gc.collect()
        gc.disable()
        self._turns.clear()
        what()
        gc.enable()
        return {
            "longest_ms": round(max(self._turns) * 1000, 2),
            "all_ms": round(sum(self._turns) * 1000, 1),
            "turns": len(self._turns),
        }

    def start(self) -> None:
        self._members = self._all_join([""] * self._size, 2 * DELAY_S)

    def sync(self) -> None:
        group = self._world.group()
        assignments = {member: b"assigned to " + member.encode() for member in self._members}

        def ask(member: str) -> Future[Any]:
            said = assignments if member == group.leader else {}
            return self._world.coordinator.sync("g", Sync(group.generation, member, assignments=said))

        answers = self._asked([lambda member=member: ask(member) for member in self._members])
        self._world.run(1)
        assert all(answer.result().error == ErrorCode.NONE for answer in answers)

    def newcomer(self) -> None:
        self._members = self._all_join(["", *self._members], 1)
        self.sync()

    def leave(self) -> None:
        gone, self._members = self._members[::2], self._members[1::2]
        portions = [gone[first : first + LEAVE_AT_ONCE] for first in range(0, len(gone), LEAVE_AT_ONCE)]
        leaves = [Leave(tuple((member, None) for member in portion)) for portion in portions]
        self._asked([lambda leave=leave: self._world.coordinator.leave("g", leave) for leave in leaves])
        self._members = self._all_join(self._members, 1)
        self.sync()

    def silence(self) -> None:
        self._world.run(2 * SESSION_S)
        assert not self._world.group().members

    def _all_join(self, members: Sequence[str], seconds: float) -> list[str]:
        def ask(member: str) -> Future[JoinResult]:
            join = Join(member, "consumer", (("range", b"topics"),), SESSION_S * 1000, 60_000)
            return self._world.coordinator.join("g", join)

        answers = self._asked([lambda member=member: ask(member) for member in members])
        self._world.run(seconds)
        assert all(answer.result().error == ErrorCode.NONE for answer in answers)
        return [answer.result().member_id for answer in answers]

    def _asked(self, requests: Sequence[Callable[[], Future[Any]]]) -> list[Future[Any]]:
        """One after the other, each in a turn of its own, as the requests of as many connections."""
        answers: list[Future[Any]] = []
        for request in requests:
            self._world.loop.call_soon(lambda request=request: answers.append(request()))
            self._world.run(0.000_1)
        return answers


def weigh(groups: int, say: Say) -> dict[str, Any]:
    """KiB of each of many small groups: a member each, and an offset for each of some partitions."""
    world = World()
    gc.collect()
    tracemalloc.start()
    for number in range(groups):
        world.alone(f"group-{number}")
        world.coordinator.commit(
            f"group-{number}",
            Commit({("orders", n): Offset(n) for n in range(PARTITIONS)}, member_id="", generation=-1),
        )
        world.run(0.01)
        world.log.batches.clear()  # it is the groups that are weighed
    each = tracemalloc.get_traced_memory()[0] / 1024 / groups
    tracemalloc.stop()
    say(f"{groups} groups of a member and {PARTITIONS} offsets: {each:.1f} KiB each")
    return {"groups": groups, "offsets": PARTITIONS, "kib_each": round(each, 2)}


if __name__ == "__main__":
    sys.exit(main())
