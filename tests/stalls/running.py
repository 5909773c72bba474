"""One row after the other against one world, with windows between them in which the victim is alone, on busy processors (`Busy`).

A row that is beyond a limit is measured again when all have been, and once more where the two do not agree: what counts is the
median. All attempts are in the report. An attempt that is beyond a limit while the host of a virtual machine takes more than
`STILL_PERCENT` of its processors says nothing: it is made again in a stiller moment, and does not count unless there is none. The
aggressor runs only where nobody else wants to, the victim before everybody: in the field each has a machine of its own. What is
no matter of chance (errors, memory, a broker that is stuck) counts at once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response
from dataplane.protocol.primitives import DecodeError
from tests.integration.asks import error_codes
from tests.stalls.aggressor import Crowd, Done
from tests.stalls.attacks import Attack
from tests.stalls.judging import RESIDENT_MIB, STREAMS, beside, is_chance, median_row, noise_ms, percentile, verdict
from tests.stalls.machine import Busy, Stolen, Used, forget_peak, giving_way, peak_mib, used
from tests.stalls.observed import Turn, pauses_of, turns_since
from tests.stalls.victim import TIMED_OUT_S, Victim, Window
from tests.stalls.world import VICTIM, World

QUIET_WITHIN_S = 45.0
"""After a row. A broker that still has to do with it then is started again."""
WARM_UP_WINDOWS = 13
"""Alone, before the first row. They say what noise is: later ones may feel what a row has left behind."""
ENOUGH_MIB = 4096.0
"""A row ends where the broker has so much: the machine has other things to do with its memory."""
ALONE_EVERY_S = 12.0
"""A window alone is measured before a row where the last one is older: five of them span a minute."""
ATTEMPTS = 3
STILL_PERCENT, STILL_LOOK_S, STILL_WITHIN_S = 5.0, 0.3, 6.0
"""A machine is still where its host takes no more than this; how long that is looked at before a row, and waited for."""
DISTURBED_ATTEMPTS = 3
"""So many in a row that say nothing; then the one that was disturbed least counts."""
CALM_MS_PER_S, CALM_LOOK_S = 150.0, 0.15
"""Of the loop's processor time, above what the victim alone costs: more is work that a row has left behind."""
_DECODED_BYTES = 64 * 2**20

Row = dict[str, Any]


def _attempts(row: Row) -> list[Row]:
    return row.get("attempts", [row])


def is_settled(row: Row) -> bool:
    """Whether another attempt would change nothing: well at once, beyond a limit twice, or three of them."""
    attempts = _attempts(row)
    if not is_chance(attempts[-1]["wrong"]) or len(attempts) == ATTEMPTS:
        return True
    return bool(row["wrong"]) == (len(attempts) > 1)


def is_disturbed(attempt: Row) -> bool:
    """Whether something is wrong with it, and all of that may be the host's doing."""
    wrong = attempt["wrong"]
    return bool(wrong) and is_chance(wrong) and attempt.get("stolen_percent", 0.0) > STILL_PERCENT


def undisturbed(make: Callable[[], Row]) -> Row:
    """The first attempt that says something, with those before it; where none does, the one that was disturbed least."""
    found = [make()]
    while is_disturbed(found[-1]) and len(found) < DISTURBED_ATTEMPTS:
        found.append(make())
    counts = min(found, key=lambda each: each["stolen_percent"]) if is_disturbed(found[-1]) else found[-1]
    others = [each for each in found if each is not counts]
    return {**counts, "disturbed": others} if others else counts


class Runner:
    """A context manager: the victim lives as long."""

    def __init__(self, world: World, seconds: float, say: Callable[[str], None]) -> None:
        self._world, self._seconds, self._say = world, seconds, say
        self._victim = self._new_victim()
        self.alone: dict[str, list[float]] = {what: [] for what in STREAMS}
        self.alone_longest: list[float] = []
        self.noise: dict[str, float] = {}
        self._idle_ms_per_s = 0.0
        self._alone_at = 0.0

    def __enter__(self) -> Self:
        self._victim.__enter__()
        self._busy = Busy()
        for _ in range(WARM_UP_WINDOWS):
            self._measure_alone()
        for values in (*self.alone.values(), self.alone_longest):
            del values[0]  # of connections and code that were new
        self.noise = {what: round(noise_ms(values), 2) for what, values in self.alone.items()}
        p99 = {what: round(beside(values), 2) for what, values in self.alone.items()}
        self._say(f"alone: p99 {p99} ms, noise {self.noise} ms, probe {max(self.alone_longest):.1f} ms")
        return self

    def __exit__(self, *_: object) -> None:
        self._busy.close()
        self._victim.__exit__()

    def _new_victim(self) -> Victim:
        return Victim(self._world.victim, VICTIM, self._world.pid if self._world.is_ours else None)

    def _used(self) -> Used:
        return used(self._world.pid, whole=not self._world.is_ours)

    def _measure_alone(self) -> None:
        before, began = self._used(), time.monotonic()
        with self._busy:
            window = self._victim.window(began, began + self._seconds, began + self._seconds)
        window = window.without(pauses_of(self._turns(began) or ()))
        self._idle_ms_per_s = self._used().since(before).ran_ms / (time.monotonic() - began)
        self.alone_longest.append(window.held)
        for what in STREAMS:
            self.alone[what].append(percentile(getattr(window, what), 0.99))
        self._alone_at = time.monotonic()

    def row(self, attack: Attack, before: Row | None = None) -> Row:
        """The figures of one attempt and those `before`, and what is wrong with them: see the file's text."""
        attempt = undisturbed(lambda: self._attempt(attack))
        attempts = [*_attempts(before), attempt] if before else [attempt]
        row = attempts[-1]
        if is_chance(row["wrong"]):
            row = median_row(attempts)
            row["wrong"] = verdict(row, self.noise)
        return {**row, "attempts": attempts} if len(attempts) > 1 else row

    def _wait_until_it_is_still(self) -> None:
        """The machine, for as long as a look at it takes."""
        until = time.monotonic() + STILL_WITHIN_S
        while time.monotonic() < until:
            stolen = Stolen()
            with self._busy:
                time.sleep(STILL_LOOK_S)
            if stolen.percent() <= STILL_PERCENT:
                return

    def _attempt(self, attack: Attack) -> Row:
        self._wait_until_it_is_still()
        if time.monotonic() - self._alone_at > ALONE_EVERY_S:
            self._measure_alone()
        row: Row = {"name": attack.name, "door": attack.door, "api": attack.api, "version": attack.version}
        row["form"] = attack.form
        try:
            attack.before(self._world)
            frames = attack.frames(self._world)
            crowd = Crowd(
                lambda: self._world.connect(attack.door),
                attack.connections,
                attack.depth,
                reads=attack.reads,
                resets=attack.resets,
            )
        except (OSError, AssertionError) as problem:
            return {**row, "not_run": f"{type(problem).__name__}: {problem}"[:300], "wrong": ["not run"]}
        row["frame_bytes"] = max(map(len, frames))
        try:
            row |= self._measured(crowd, attack, frames)
        finally:
            with suppress(OSError, AssertionError):
                attack.after(self._world)
        row["wrong"] = verdict(row, self.noise)
        is_full = self._world.is_ours and row["resident_mib"] > RESIDENT_MIB
        if row["died"] or row["calm_after_s"] is None or is_full:
            self._restart()
        return row

    def _measured(self, crowd: Crowd, attack: Attack, frames: Sequence[bytes]) -> Row:
        world, seconds = self._world, self._seconds * attack.seconds
        forget_peak(world.pid)
        self._victim.quiet(5.0)
        before, began, stolen = self._used(), time.monotonic(), Stolen()
        with giving_way():
            done = crowd.run(frames, seconds, lambda: peak_mib(world.pid) > ENOUGH_MIB)
            stolen_percent = stolen.percent()
            crowd.close()
        died = not _runs(world.pid)
        quiet = not died and self._victim.quiet(QUIET_WITHIN_S)
        until = time.monotonic()
        calm = quiet and self._is_calm(until + QUIET_WITHIN_S)
        calm_at = time.monotonic()
        spent = Used(0.0, 0.0) if died else self._used().since(before)
        ran_ms = spent.ran_ms - self._idle_ms_per_s * (calm_at - began)
        felt_until = (
            done.ended_s if attack.resets else calm_at
        )  # who goes in order leaves work behind: it is part of the row
        window = self._victim.window(began, felt_until, calm_at)
        turns = self._turns(began)
        window = window.without(pauses_of(turns or ()))
        return {
            "sent_bytes": done.sent_bytes,
            "answers": done.answers,
            "answered_bytes": done.answered_bytes,
            "closed": done.closed,
            "refused": done.refused,
            "first_ms": round(done.first_ms, 1),
            "codes": _codes(attack, done),
            "cost_ms": round(max(0.0, ran_ms) / max(done.answers, 1), 3),
            "ran_ms": round(max(0.0, ran_ms), 1),
            "waited_ms": round(spent.waited_ms, 1),
            "stolen_percent": round(stolen_percent, 1),
            "turn_ms": None if turns is None else max((turn.ran_ms for turn in turns), default=0.0),
            "turn_took_ms": None if turns is None else max((turn.took_ms for turn in turns), default=0.0),
            "held_ms": round(window.held, 1),
            "probe_ms": round(window.longest, 1),
            **self._streams(window),
            "errors": window.errors,
            "resident_mib": 0.0 if died else round(peak_mib(world.pid), 1),
            "quiet_after_s": round(until - done.ended_s, 2) if quiet else None,
            "calm_after_s": round(calm_at - done.ended_s, 2) if calm else None,
            "died": died,
        }

    def _turns(self, since_s: float) -> list[Turn] | None:
        """The longer ones; None: nobody writes them down."""
        return turns_since(self._world.turns, since_s) if self._world.turns is not None else None

    def _is_calm(self, until: float) -> bool:
        """Wait until the loop works for nobody but the victim. Others may be served well meanwhile: it is no fault of a row."""
        while self._world.is_ours and time.monotonic() < until:
            before, began = self._used(), time.monotonic()
            time.sleep(CALM_LOOK_S)
            ran_ms, took_s = self._used().since(before).ran_ms, time.monotonic() - began
            if ran_ms < (self._idle_ms_per_s + CALM_MS_PER_S) * took_s:
                return True
        return not self._world.is_ours  # whose threads have work of their own

    def _streams(self, window: Window) -> Row:
        found: Row = {}
        for what in STREAMS:
            values, alone = getattr(window, what), beside(self.alone[what])
            p99 = percentile(values, 0.99) if values else TIMED_OUT_S * 1000
            found[what] = {
                "p50": round(percentile(values, 0.5), 2),
                "p99": round(p99, 2),
                "p99_seen": round(percentile(window.as_seen(what), 0.99), 2),
                "alone": round(alone, 2),
                "ratio": round(p99 / alone, 2) if alone else 0.0,
            }
        return found

    def _restart(self) -> None:
        self._say("the broker is started again")
        self._victim.__exit__()
        self._world.restart()
        self._victim = self._new_victim()
        self._victim.__enter__()
        self._victim.quiet(30.0)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _codes(attack: Attack, done: Done) -> dict[str, int]:
    """Error codes in the first answer: whether the request was what it should be."""
    if not done.first or len(done.first) > _DECODED_BYTES:
        return {}
    api = APIS[ApiKey[attack.api]]
    try:
        answer = decode_response(api, attack.version, done.first)[1]
    except DecodeError:
        return {"undecodable": 1}
    return {str(int(code)): 1 for code in sorted(error_codes(answer))}


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """The table."""
    yield (
        f"{'row':<66}{'frame':>9}{'answers':>9}{'ms each':>10}{'turn ms':>9}{'held':>9}{'p50':>8}{'p99':>9}{'ratio':>8}"
        f"{'errors':>8}{'MiB':>7}{'tries':>6}  wrong"
    )
    for row in rows:
        yield line(row)


def line(row: Row) -> str:
    """Of the table."""
    if "not_run" in row:
        return f"{row['name']:<66}not run: {row['not_run'][:100]}"
    worse = max((row[what] for what in STREAMS), key=lambda found: found["ratio"])
    turn = row["held_ms"] if row["turn_ms"] is None else row["turn_ms"]
    text = (
        f"{row['name']:<66}{row['frame_bytes']:>9}{row['answers']:>9}{row['cost_ms']:>10.3f}{turn:>9.1f}{row['held_ms']:>9.1f}"
        f"{worse['p50']:>8.1f}{worse['p99']:>9.1f}{worse['ratio']:>8.2f}{sum(row['errors'].values()):>8}"
        f"{row['resident_mib']:>7.0f}{len(row.get('attempts', '1')):>6}  {', '.join(row['wrong'])}"
    )
    if not row["died"] and row["calm_after_s"] is None:
        text += f"  (works on after {QUIET_WITHIN_S:.0f} s)"
    theirs = row.get("apache")
    if theirs and "held_ms" in theirs:
        other = max((theirs[what] for what in STREAMS), key=lambda found: found["ratio"])
        text += (
            f"  (apache: {theirs['cost_ms']:.3f} ms each, probe {theirs['probe_ms']:.1f}, p99 {other['ratio']:.2f}x)"
        )
    return text


def commonest(rows: Sequence[Row]) -> str:
    """What is wrong, in a sentence."""
    counted = Counter(what for row in rows for what in row["wrong"])
    bad = sum(bool(row["wrong"]) for row in rows)
    again = sum("attempts" in row for row in rows)
    return (
        f"{len(rows)} rows, {bad} beyond the limits"
        + "".join(f"; {what}: {n}" for what, n in counted.most_common())
        + f"; {again} measured more than once, judged by the median"
    )
