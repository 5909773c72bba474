"""Who has the loop, and whose memory it holds: an account for each instance, and one for the cluster's own connections.

Time. What is ready waits in the queue of its account, and a turn serves accounts by deficit round robin (Shreedhar and
Varghese, 1995): each is given its part of `TURN_S`, pays for what it uses, and takes what it overdrew into its next
turns. So a tenant with a thousand busy connections, or with one costly request, delays another by a part of a turn, not
by a thousand connections. An account that is not busy is not in any queue and costs nothing. The cluster's own account is
served first in every turn: replication, the controller and the control plane do not stand behind tenants. It has as much
of a turn as all tenants together, and does what takes longer than `LEAST_QUANTUM_S` when the modest of them have been
answered.

Who goes first. An account that has used little of the loop lately stands before one that has used more, and what its
requests have appended and answered leaves before an account that has had more than its share is served at all. So who asks
for little waits for the turn that is under way, and not for a greedy neighbour's part of the next one, too. What leaves at
the end of a turn leaves in that order as well, the cluster's own by what it has used like any other's (`modest_first`).

Who comes again. A turn in which a greedy account (more than `MODEST_S` lately) alone has something ready is half as long
while another tenant has had the loop within `LATELY_S`: that one will ask again in its midst, and wait for its end. So are
its slices of long work (`share`).

What leaves late. Answers of an account that has overdrawn more than `OVERDRAWN_S` while others wait, and more than
`OVERDRAWN_ALONE_S` in any case, are put off: they leave in the account's own time, in its next turns (`may_send`).

What else the loop does for an account (slices of long work, answers on their way out, its part of the writing at the end
of the turn) is charged to it as well, by the clock.

Memory. What a connection holds (frames on their way in, requests that wait, answers that nobody reads) is held by its
account. Above half of its budget nothing more is begun; above all of it, or when all accounts together hold too much, the
connection that holds most of the account that holds most is ended, and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import exp, inf
from typing import TYPE_CHECKING, Protocol, TypeVar

from quota.core.bucket import TokenBucket

if TYPE_CHECKING:
    from dataplane.network.handshakes import Handshakes

TURN_S = 0.000_5
"""So long a turn serves what is ready, all accounts together."""
LEAST_QUANTUM_S = 0.000_15
"""Of one account in a turn: less would be spent on going from one to the next."""
LATELY_S = 0.02
"""What an account has used of the loop fades in this time to 1/e."""
MODEST_S = LATELY_S / 4
"""Whoever has used less than that of the loop lately is not greedy, whatever others do."""
GREEDY = 2.0
"""So many times what those before it have used on average lately, and a quantum, is more than a share."""
OVERDRAWN_S = TURN_S
"""So much an account may owe, and its answers leave all the same, while others have something ready."""
OVERDRAWN_ALONE_S = 4 * TURN_S
"""The same while nobody else has: to put off costs a turn's own work, and nobody gains by it. It has an end, since others may
come meanwhile: of 40 consumers who catch up by TLS each has an answer of a MiB, which are 10 to 20 ms."""
MOST_OVERDRAWN_S = 1.0
"""What is remembered of an account that used more than its part."""
ACCOUNT_BYTES = 128 * 2**20
"""What one account may hold."""
INTERNAL_BYTES = 256 * 2**20
ALL_ACCOUNTS_BYTES = 512 * 2**20
"""What the accounts of all instances may hold together."""
CALLS_AT_ONCE = 16
"""What is woken is called at once so many times in a turn, of one account; one record can wake a thousand."""
INTERNAL = ""
MICROSECONDS = 1_000_000


class Holder(Protocol):
    """A connection, as its account sees it."""

    def serve(self, until: float) -> None:
        """Do what it is ready for, until about this moment; what is left it queues again."""
        ...

    def cut_off(self, reason: str) -> None:
        """End it: it holds too much."""
        ...


class Sending(Protocol):
    """A connection that has something to send."""

    payer: Account


S = TypeVar("S", bound=Sending)


class Account:
    """One instance's, or the cluster's own."""

    __slots__ = (
        "_holders",
        "_ready",
        "_starved",
        "budget_bytes",
        "cut_connections",
        "deficit_s",
        "handshakes",
        "held_bytes",
        "insecure",
        "insecure_told",
        "is_active",
        "is_gone",
        "lately_at",
        "lately_s",
        "left_at",
        "loop_bucket",
        "name",
        "queue",
        "spent_s",
        "too_large",
        "too_large_told",
        "turn_bytes",
        "waiting",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: deque[Holder | Callable[[], None]] = deque()
        self.is_active = False  # in the round, or being served
        self.is_gone = False  # its instance; forgotten when nothing is held any more
        self.deficit_s = 0.0  # what it may still use; below 0: what it has to give back
        self.left_at = 0.0  # when it had nothing to do any more
        self.lately_s = 0.0  # of the loop, fading, as of `lately_at`
        self.lately_at = 0.0
        self.spent_s = 0.0  # of the loop, since the beginning
        self.loop_bucket: TokenBucket | None = None  # what is spent is charged to it, in microseconds
        self.turn_bytes = 0  # of frames that were handed out in this turn, or are written at its end
        self.waiting = 0  # connections that are not read from because of a limit: then others are read frame by frame
        self.budget_bytes = ACCOUNT_BYTES if name else INTERNAL_BYTES
        self.held_bytes = 0
        self.cut_connections = 0
        self.too_large = 0  # requests, each the end of its connection
        self.too_large_told = (0.0, 0)  # when that was said last, and how many there had been (see `refusals`)
        self.insecure = 0  # connections that ended without TLS where it is wanted
        self.insecure_told = (0.0, 0)
        self.handshakes: Handshakes | None = None  # made for the first connection that wants TLS
        self._holders: dict[Holder, int] = {}
        self._starved: deque[Callable[[], None]] = deque()

    def used_lately(self, now: float) -> float:
        """Seconds of the loop, those long ago for less."""
        return self.lately_s * exp((self.lately_at - now) / LATELY_S)

    # --- memory -------------------------------------------------------------------------------------------------------

    @property
    def is_short(self) -> bool:
        """Whether nothing more may be begun: half of the budget is held."""
        return self.held_bytes > self.budget_bytes >> 1

    @property
    def reads_frame_by_frame(self) -> bool:
        """Whether what stands behind a request stays in the socket."""
        return self.waiting > 0 or self.held_bytes > self.budget_bytes >> 2

    def held_by(self, holder: Holder) -> int:
        """Bytes that one connection holds."""
        return self._holders.get(holder, 0)

    def largest(self) -> Holder | None:
        """The connection that holds most."""
        return max(self._holders, key=self._holders.__getitem__, default=None)

    def when_there_is_room(self, callback: Callable[[], None]) -> None:
        """Call once less than half of the budget is held; whoever came first, first."""
        self._starved.append(callback)

    def _change(self, holder: Holder, more: int) -> None:
        held = self._holders.get(holder, 0) + more
        if held:
            self._holders[holder] = held
        else:
            self._holders.pop(holder, None)
        self.held_bytes += more

    def next_starved(self) -> Callable[[], None] | None:
        """Somebody who waits for room, when there is some."""
        return self._starved.popleft() if self._starved and not self.is_short else None


class Accounts:
    """Of one loop. `clock` is its monotonic one, in seconds."""

    def __init__(self, clock: Callable[[], float], broken: Callable[[object], None]) -> None:
        self._clock = clock
        self._broken = broken  # told what raised: the others are served
        self._all: dict[str, Account] = {}
        self._active: deque[Account] = deque()  # those that have something ready
        self._to_come = 0  # modest accounts that are not among these now, as they have their turn still in this round
        self.internal = self.of(INTERNAL)
        self._nobody = Account("gone")  # whose account is forgotten
        self.tenants_held_bytes = 0
        self._bringers: list[Account] = []  # of this turn
        self._calls: dict[Account, int] = {}  # at once, in this turn
        self._used: dict[Account, float] = {}  # of this turn
        self._written: dict[Account, int] = {}  # bytes, by whom they were brought that were written last
        self._charged_s = 0.0  # to all, since the beginning
        self._tenant: Account | None = None  # who had the loop last, of all but the cluster
        self._tenant_at = self._other_at = -inf  # when that was, and when it was another tenant

    def of(self, name: str) -> Account:
        """The account of this name, made where there is none."""
        account = self._all.get(name)
        if account is None:
            account = self._all[name] = Account(name)
        account.is_gone = False
        return account

    def known(self, name: str) -> Account:
        """The account of this name for what may come late: of one that is forgotten, one for all who are gone."""
        return self._all.get(name, self._nobody)

    def spent_s(self, name: str) -> float:
        """What an account has used of the loop since it was made; 0: there is none."""
        account = self._all.get(name)
        return 0.0 if account is None else account.spent_s

    def forget(self, name: str) -> None:
        """The instance is gone. What still holds something keeps its account, and that goes with the last of it."""
        account = self._all.get(name)
        if account is not None:
            account.loop_bucket, account.is_gone = None, True
            self._drop_if_gone(account)

    def _drop_if_gone(self, account: Account) -> None:
        if account.is_gone and not account.held_bytes and self._all.get(account.name) is account:
            del self._all[account.name]

    def all(self) -> list[Account]:
        """For figures."""
        return list(self._all.values())

    # --- time ---------------------------------------------------------------------------------------------------------

    def ready(self, account: Account, work: Holder | Callable[[], None]) -> None:
        """To be served when the account's time comes."""
        if not account.is_active:
            account.is_active = True
            self._active.append(account)
            if account.deficit_s < 0.0:  # what was overdrawn is given back by doing without, too
                account.deficit_s = min(0.0, account.deficit_s + self._clock() - account.left_at)
        account.queue.append(work)

    @property
    def is_busy(self) -> bool:
        """Whether a turn is owed to somebody."""
        return bool(self._active)

    def brought(self, account: Account, size: int) -> None:
        """Frames of so many bytes were handed out in this turn: its end, where they are written, is charged by them."""
        if not account.turn_bytes:
            self._bringers.append(account)
        account.turn_bytes += size

    def charge(self, account: Account, seconds: float) -> None:
        """The loop has worked for this account."""
        account.deficit_s = max(account.deficit_s - seconds, -MOST_OVERDRAWN_S)
        if not account.is_active:
            account.left_at = self._clock()  # from here on it does without
        used = self._used
        used[account] = used.get(account, 0.0) + seconds
        self._charged_s += seconds

    def charge_turn_end(self, seconds: float, *, follows: bool = False) -> None:
        """What the end of the turn took (writing above all), by what each account brought.

        `follows`: it came of what was charged before. Where nothing was brought since then it is charged to the same.
        """
        bringers, self._bringers = self._bringers, []
        if bringers or not follows:
            self._written = {account: account.turn_bytes for account in bringers}
        total = sum(self._written.values())
        for account, size in self._written.items():
            self.charge(account, seconds * size / total)
        for account in bringers:
            account.turn_bytes = 0

    def may_run(self, account: Account) -> bool:
        """Whether something may be called for an account at once; counted until the turn ends."""
        calls = self._calls.get(account, 0)
        self._calls[account] = calls + 1
        return calls < CALLS_AT_ONCE

    def end_turn(self, now: float) -> Account | None:
        """Settle what was used in this turn; who used most of it."""
        most, longest_s = None, 0.0
        for account, seconds in self._used.items():
            if account is not self.internal:
                if account is not self._tenant:
                    self._tenant, self._other_at = account, self._tenant_at
                self._tenant_at = now
            account.spent_s += seconds
            account.lately_s = account.used_lately(now) + seconds
            account.lately_at = now
            if account.loop_bucket is not None:
                account.loop_bucket.charge(int(seconds * MICROSECONDS), now)
            if seconds > longest_s:
                most, longest_s = account, seconds
        self._used.clear()
        self._calls.clear()
        for account in self._bringers:  # of a turn at whose end nothing was written: the next one is not theirs
            account.turn_bytes = 0
        self._bringers.clear()
        self._written = {}
        return most

    def share(self, account: Account) -> float:
        """What one account may have of the time that is for all: half, where it is greedy and another tenant comes as well."""
        now = self._clock()
        others_at = self._other_at if account is self._tenant else self._tenant_at
        return 0.5 if now - others_at < LATELY_S and account.used_lately(now) > MODEST_S else 1.0

    def may_send(self, account: Account) -> bool:
        """Whether answers may leave now: not those of an account that has overdrawn, which may owe more while no other waits."""
        active = self._active
        is_alone = not self._to_come and (not active or (len(active) == 1 and active[0] is account))
        return account.deficit_s > -(OVERDRAWN_ALONE_S if is_alone else OVERDRAWN_S)

    def modest_first(self, senders: list[S]) -> list[S]:
        """In this order they send: those first whose accounts have used least of the loop lately, the cluster as any other."""
        accounts = {sender.payer for sender in senders}
        if len(accounts) == 1:
            return senders
        now = self._clock()
        lately = {account: account.used_lately(now) for account in accounts}
        return sorted(senders, key=lambda sender: lately[sender.payer])

    def serve(self, send: Callable[[], None]) -> None:
        """One round: each account that has something ready uses its part of a turn; `send` ends what was begun so far."""
        active = self._active
        if len(active) == 1:
            account = active.popleft()
            self._visit(account, TURN_S * self.share(account))
            return
        quantum_s = max(LEAST_QUANTUM_S, TURN_S / len(active))
        own_s = min(TURN_S, quantum_s * (len(active) - 1))  # the cluster's: as much as tenants have together
        modest, greedy = self._in_order()
        active.clear()
        active.extend(greedy)
        self._to_come = len(modest)
        for account in modest:
            self._to_come -= 1
            self._visit(account, LEAST_QUANTUM_S if account is self.internal else quantum_s)
        if self.internal.queue:
            active.remove(self.internal)
            active.appendleft(self.internal)
            greedy.insert(0, self.internal)
        if greedy:
            send()
            for account in greedy:
                active.popleft()
                self._visit(account, own_s - LEAST_QUANTUM_S if account is self.internal else quantum_s)

    def _in_order(self) -> tuple[list[Account], list[Account]]:
        """Those that have something ready: the cluster's own, then who has used least lately; and from whom on it is greed."""
        now = self._clock()
        lately = {account: account.used_lately(now) for account in self._active}
        modest: list[Account] = []
        if lately.pop(self.internal, None) is not None:  # it is no measure for tenants
            modest.append(self.internal)
        order = sorted(lately, key=lately.__getitem__)
        used_s = 0.0
        for number, account in enumerate(order):
            if number and lately[account] > GREEDY * used_s / number + LEAST_QUANTUM_S:
                return modest + order[:number], order[number:]
            used_s += lately[account]
        return modest + order, []

    def _visit(self, account: Account, more_s: float) -> None:
        account.deficit_s = min(account.deficit_s + more_s, TURN_S)
        self._serve(account)
        if account.queue:
            self._active.append(account)
        else:
            account.is_active = False
            account.left_at = self._clock()
            account.deficit_s = min(account.deficit_s, 0.0)

    def _serve(self, account: Account) -> None:
        clock, queue = self._clock, account.queue
        began = clock()
        while queue and account.deficit_s > 0.0:
            work = queue.popleft()
            charged_s = self._charged_s
            try:
                if callable(work):
                    work()
                else:
                    work.serve(began + account.deficit_s)
            except Exception:  # noqa: BLE001 - one connection's bug must not stop the others
                self._broken(work)
            ended = clock()
            # where the arena was full the turn was ended meanwhile, and that is charged already, to others too
            self.charge(account, max(0.0, ended - began - (self._charged_s - charged_s)))
            began = ended

    # --- memory -------------------------------------------------------------------------------------------------------

    def hold(self, account: Account, holder: Holder, more: int) -> None:
        """A connection holds so many bytes more, or less. It may be the one that is cut off for it."""
        account._change(holder, more)  # noqa: SLF001 - the two halves of one thing
        if account is not self.internal:
            self.tenants_held_bytes += more
        if more > 0:
            self._end_largest(account)
        else:
            while (waiting := account.next_starved()) is not None:
                waiting()
            if account.is_gone:
                self._drop_if_gone(account)

    def _end_largest(self, account: Account) -> None:
        while account.held_bytes > account.budget_bytes:
            self._cut(account, "its instance holds too much of the broker's memory")
        while self.tenants_held_bytes > ALL_ACCOUNTS_BYTES:
            tenants = (each for each in self._all.values() if each is not self.internal)
            self._cut(max(tenants, key=lambda each: each.held_bytes), "instances hold too much of the broker's memory")

    def _cut(self, account: Account, reason: str) -> None:
        largest = account.largest()
        if largest is None:
            raise AssertionError(f"{account.name!r} holds {account.held_bytes} bytes and nobody has them")
        account.cut_connections += 1
        largest.cut_off(reason)  # gives back what it holds
