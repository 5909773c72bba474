"""The loop's time and memory are divided between accounts: an instance with much to do costs another its own part only."""

from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.network import accounts as module
from dataplane.network.accounts import (
    ACCOUNT_BYTES,
    LATELY_S,
    LEAST_QUANTUM_S,
    MICROSECONDS,
    OVERDRAWN_ALONE_S,
    TURN_S,
    Accounts,
)
from dataplane.network.loop import EpollLoop
from quota.core.bucket import TokenBucket


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Work:
    """A connection that has something to do as often as it is asked, until it has done it `times`."""

    def __init__(self, clock, accounts, account, took, *, seconds, times):
        self.clock, self.accounts, self.account, self.took = clock, accounts, account, took
        self.seconds, self.times = seconds, times
        self.is_cut = False
        accounts.ready(account, self)

    def serve(self, _until):
        self.clock.now += self.seconds
        self.took.append(self.account.name)
        self.times -= 1
        if self.times:
            self.accounts.ready(self.account, self)

    def cut_off(self, _reason):
        self.is_cut = True
        self.accounts.hold(self.account, self, -self.account.held_by(self))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def accounts(clock):
    return Accounts(clock, lambda work: pytest.fail(f"{work} raised"))


def turn(accounts, clock):
    """One turn; how long it took."""
    began = clock.now
    accounts.serve(lambda: None)
    accounts.end_turn(clock.now)
    return clock.now - began


def test_a_thousand_connections_of_one_have_no_more_than_one_of_another(accounts, clock):
    took = []
    for _ in range(1_000):
        Work(clock, accounts, accounts.of("many"), took, seconds=0.000_1, times=100)
    Work(clock, accounts, accounts.of("one"), took, seconds=0.000_1, times=1_000)
    for _ in range(50):
        turn(accounts, clock)
    assert took.count("one") == pytest.approx(len(took) / 2, rel=0.05)


def test_who_has_costly_requests_has_fewer_of_them(accounts, clock):
    took = []
    Work(clock, accounts, accounts.of("costly"), took, seconds=0.005, times=1_000)
    Work(clock, accounts, accounts.of("cheap"), took, seconds=0.000_1, times=100_000)
    for _ in range(200):
        turn(accounts, clock)
    costly_s, cheap_s = took.count("costly") * 0.005, took.count("cheap") * 0.000_1
    assert costly_s == pytest.approx(cheap_s, rel=0.1)


@given(
    costs=st.lists(st.integers(10, 3_000), min_size=1, max_size=8),
    counts=st.lists(st.integers(1, 40), min_size=8, max_size=8),
)
def test_a_turn_is_bounded_and_nobody_is_left_out(costs, counts):
    clock, took = Clock(), []
    accounts = Accounts(clock, lambda _: None)
    for number, cost in enumerate(costs):
        for _ in range(counts[number]):
            Work(clock, accounts, accounts.of(f"ins-{number}"), took, seconds=cost / MICROSECONDS, times=3)
    longest = max(costs) / MICROSECONDS
    turns = 0
    while accounts.is_busy:
        spent = turn(accounts, clock)
        quanta = max(TURN_S, len(costs) * module.LEAST_QUANTUM_S)
        assert spent <= quanta + len(costs) * longest + 1e-9
        turns += 1
        assert turns < 10_000
    assert len(took) == 3 * sum(counts[: len(costs)])


def test_alone_nobody_waits_for_the_sake_of_others(accounts, clock):
    took = []
    times = round(TURN_S / 0.000_05) - 1
    Work(clock, accounts, accounts.of("alone"), took, seconds=0.000_05, times=times)
    turn(accounts, clock)
    assert len(took) == times
    assert not accounts.is_busy


@pytest.mark.parametrize("name", ["greedy", ""])
def test_a_turn_of_who_is_greedy_is_half_as_long_while_another_tenant_comes_as_well(accounts, clock, name):
    took = []
    Work(clock, accounts, accounts.of(name), took, seconds=TURN_S / 50, times=10_000)
    for _ in range(20):  # until it has used much
        assert turn(accounts, clock) == pytest.approx(TURN_S, rel=0.05)
    for _ in range(3):
        Work(clock, accounts, accounts.of("modest"), took, seconds=TURN_S / 50, times=1)
        turn(accounts, clock)
        assert turn(accounts, clock) == pytest.approx(TURN_S / 2, rel=0.05)  # the modest one has nothing ready now
    clock.now += LATELY_S
    assert turn(accounts, clock) == pytest.approx(TURN_S, rel=0.05)


def test_a_modest_one_has_its_whole_turn_beside_a_greedy_one(accounts, clock):
    took = []
    Work(clock, accounts, accounts.of("greedy"), took, seconds=TURN_S / 50, times=1_000)
    for _ in range(20):
        turn(accounts, clock)
    clock.now += LATELY_S / 2
    assert accounts.share(accounts.of("modest")) == 1.0


def test_the_cluster_does_not_shorten_a_tenants_turns(accounts, clock):
    took = []
    Work(clock, accounts, accounts.of("alone"), took, seconds=TURN_S / 50, times=10_000)
    Work(clock, accounts, accounts.internal, took, seconds=TURN_S / 50, times=1)
    turn(accounts, clock)
    assert turn(accounts, clock) == pytest.approx(TURN_S, rel=0.05)


def test_answers_leave_in_the_order_of_modesty_and_of_one_account_in_theirs(accounts, clock):
    greedy, modest = accounts.of("greedy"), accounts.of("modest")
    accounts.charge(greedy, 0.01)
    accounts.charge(modest, 0.001)
    accounts.end_turn(clock.now)
    senders = [SimpleNamespace(payer=account, name=number) for number, account in enumerate((greedy, modest) * 2)]
    senders.append(SimpleNamespace(payer=accounts.internal, name="own"))
    assert [sender.name for sender in accounts.modest_first(senders)] == ["own", 1, 3, 0, 2]
    accounts.charge(accounts.internal, 0.005)
    accounts.end_turn(clock.now)
    assert [sender.name for sender in accounts.modest_first(senders)] == [1, 3, "own", 0, 2], "no more than its use"


def test_who_waits_alone_holds_up_nobody_with_its_answers(accounts, clock):
    debtor = accounts.of("debtor")
    accounts.charge(debtor, 2 * TURN_S)
    accounts.ready(debtor, lambda: None)
    assert accounts.may_send(debtor)
    accounts.ready(accounts.of("other"), lambda: None)
    assert not accounts.may_send(debtor)


def test_who_is_served_while_another_has_its_turn_still_to_come_is_not_alone(accounts):
    answers = []

    def owe(account):
        accounts.charge(account, 2 * TURN_S)
        answers.append(accounts.may_send(account))

    for name in ("first", "second"):
        account = accounts.of(name)
        accounts.ready(account, partial(owe, account))
    accounts.serve(lambda: None)
    assert answers == [False, True]


class LongAnswer:
    """A connection with an answer that takes a turn's time to send. What is put off it sends in its account's time."""

    def __init__(self, loop, clock, account, sent):
        self.loop, self.clock, self.payer, self.sent = loop, clock, account, sent
        loop.will_send(self)

    def flush(self):
        self.clock.now += TURN_S
        self.sent.append(self.loop.turn_number)

    def put_off(self):
        self.loop.accounts.ready(self.payer, self)

    def serve(self, _until):
        self.flush()


@pytest.mark.parametrize("is_active", [True, False])
def test_forty_long_answers_of_one_who_is_alone_leave_over_many_turns_and_all_of_them(clock, is_active):
    """Consumers that catch up. Whoever comes meanwhile would wait for all of them."""
    loop, sent = EpollLoop(SimpleNamespace(monotonic=clock)), []
    account = loop.accounts.of("alone")
    for _ in range(40):
        LongAnswer(loop, clock, account, sent)
    if is_active:
        loop.accounts.ready(account, lambda: None)
    loop.end_turn()
    at_once = len(sent)
    assert at_once == pytest.approx(OVERDRAWN_ALONE_S / TURN_S, abs=1)
    loop.accounts.end_turn(clock.now)
    while loop.accounts.is_busy:
        before = len(sent)
        loop.accounts.serve(loop.end_turn)
        loop.end_turn()
        loop.accounts.end_turn(clock.now)
        assert len(sent) - before <= 2
    loop.close()
    assert len(sent) == 40


# --- ends of turns ----------------------------------------------------------------------------------------------------


def chained(loop, clock, happened, times):
    """What is written at the end of a turn, each part beginning the next, as the portions of a long request."""

    def write():
        nonlocal times
        times -= 1
        clock.now += 0.001
        happened.append("written")
        if times:
            loop.at_turn_end(write)

    loop.at_turn_end(write)


def test_answers_that_are_ready_do_not_wait_for_all_that_is_written_one_after_the_other(clock):
    loop, happened = EpollLoop(SimpleNamespace(monotonic=clock)), []
    chained(loop, clock, happened, 6)
    loop.will_send(SimpleNamespace(payer=loop.accounts.of("a"), flush=lambda: happened.append("sent")))
    loop.end_turn()
    loop.close()
    assert happened == ["written"] * 2 + ["sent"] + ["written"] * 4


def test_what_is_written_because_of_what_was_written_is_charged_to_the_same(clock):
    loop = EpollLoop(SimpleNamespace(monotonic=clock))
    accounts = loop.accounts
    for name, size in (("a", 300), ("b", 100)):
        accounts.brought(accounts.of(name), size)
    chained(loop, clock, [], 8)
    loop.end_turn()
    accounts.end_turn(clock.now)
    assert [accounts.spent_s(name) for name in ("a", "b")] == pytest.approx([0.006, 0.002])
    chained(loop, clock, [], 3)  # another time, when nobody has brought anything
    loop.end_turn()
    accounts.end_turn(clock.now)
    loop.close()
    assert [accounts.spent_s(name) for name in ("a", "b")] == pytest.approx([0.006, 0.002])


def test_in_the_same_turn_nobody_is_charged_for_what_follows_from_nothing_of_his(clock):
    """A turn may end several times."""
    loop = EpollLoop(SimpleNamespace(monotonic=clock))
    loop.accounts.brought(loop.accounts.of("a"), 300)
    for _ in range(2):
        chained(loop, clock, [], 1)
        loop.end_turn()
    loop.accounts.end_turn(clock.now)
    loop.close()
    assert loop.accounts.spent_s("a") == pytest.approx(0.001)


def test_the_clusters_own_come_first(accounts, clock):
    took = []
    for name in ("a", "b"):
        Work(clock, accounts, accounts.of(name), took, seconds=0.000_1, times=1)
    Work(clock, accounts, accounts.internal, took, seconds=0.000_1, times=1)
    turn(accounts, clock)
    assert took == ["", "a", "b"]


def test_the_cluster_has_half_of_the_loop_and_most_of_that_when_modest_tenants_were_answered(accounts, clock):
    took = []
    step_s = TURN_S / 20
    Work(clock, accounts, accounts.internal, took, seconds=step_s, times=200)
    for _ in range(3):
        took.clear()
        Work(clock, accounts, accounts.of("tenant"), took, seconds=step_s, times=1)
        accounts.serve(lambda: took.append("sent"))
        accounts.end_turn(clock.now)
        before, after = took[: took.index("tenant")], took[took.index("tenant") + 1 :]
        assert len(before) == pytest.approx(LEAST_QUANTUM_S / step_s, abs=1.1)
        assert set(before) == {""}
        assert after[0] == "sent"
        assert len(before) + len(after[1:]) == pytest.approx(TURN_S / 2 / step_s, abs=1.1)
        assert set(after[1:]) == {""}


def test_tenants_that_ask_for_all_leave_half_to_the_cluster(accounts, clock):
    took = []
    for name in ("", "a", "b", "c"):
        Work(clock, accounts, accounts.of(name), took, seconds=TURN_S / 50, times=10_000)
    for _ in range(200):
        turn(accounts, clock)
    assert took.count("") / len(took) == pytest.approx(0.5, abs=0.03)


def test_who_has_used_least_of_the_loop_lately_is_served_first(accounts, clock):
    took = []
    for name, seconds in (("much", 0.000_4), ("little", 0.000_1), ("more", 0.000_2)):
        Work(clock, accounts, accounts.of(name), took, seconds=seconds, times=1)
        turn(accounts, clock)
    clock.now += 0.01  # nobody owes anything any more, and nothing is forgotten
    took.clear()
    for name in ("much", "little", "more"):
        Work(clock, accounts, accounts.of(name), took, seconds=0.000_1, times=1)
    turn(accounts, clock)
    assert took == ["little", "more", "much"]


def test_what_was_used_long_ago_is_forgotten(accounts, clock):
    took = []
    Work(clock, accounts, accounts.of("a"), took, seconds=0.1, times=1)
    turn(accounts, clock)
    clock.now += 60.0
    Work(clock, accounts, accounts.of("a"), took, seconds=0.000_1, times=1)
    turn(accounts, clock)
    Work(clock, accounts, accounts.of("b"), took, seconds=0.000_2, times=1)
    turn(accounts, clock)
    took.clear()
    for name in ("b", "a"):
        Work(clock, accounts, accounts.of(name), took, seconds=0.000_1, times=1)
    turn(accounts, clock)
    assert took == ["a", "b"]


def test_what_others_asked_for_has_left_before_one_that_had_more_than_its_share_is_served(accounts, clock):
    took = []
    Work(clock, accounts, accounts.of("greedy"), took, seconds=0.000_4, times=100)
    for _ in range(20):
        turn(accounts, clock)
    took.clear()
    for name in ("modest", "other"):
        Work(clock, accounts, accounts.of(name), took, seconds=0.000_01, times=1)
    for _ in range(2):  # it has overdrawn, and may have to wait for a turn
        accounts.serve(lambda: took.append("sent"))
    assert took == ["modest", "other", "sent", "greedy"]


@pytest.mark.parametrize("beside", ["another", "", "a third and a fourth"])
def test_several_that_are_greedy_are_no_measure_for_each_other(accounts, clock, beside):
    """Nor is the cluster itself, which is busy wherever tenants produce much."""
    took = []
    for name in {"greedy", *beside.split(" and ")}:
        Work(clock, accounts, accounts.of(name), took, seconds=0.000_4, times=200)
    for _ in range(20):
        turn(accounts, clock)
    took.clear()
    Work(clock, accounts, accounts.of("modest"), took, seconds=0.000_01, times=1)
    accounts.serve(lambda: took.append("sent"))
    tenants = [name for name in took if name]
    assert tenants[:2] == ["modest", "sent"]


def test_equals_share_a_turn_that_ends_once(accounts, clock):
    """Where nobody had more than a share, writing and sending are not done twice in a turn."""
    took, sent = [], []
    for name in ("a", "b", "c"):
        Work(clock, accounts, accounts.of(name), took, seconds=0.000_1, times=50)
    while accounts.is_busy:
        accounts.serve(lambda: sent.append(len(took)))
        accounts.end_turn(clock.now)
    assert len(took) == 150
    assert not sent


def test_what_was_overdrawn_is_given_back_by_doing_without(accounts, clock):
    account = accounts.of("a")
    accounts.charge(account, 0.5)
    clock.now += 0.6
    took = []
    Work(clock, accounts, account, took, seconds=0.000_1, times=1)
    turn(accounts, clock)
    assert took == ["a"]


def test_what_was_done_beside_its_turns_is_given_back_too(accounts, clock):
    """Slices of long work are no turns: who has just had a second of them waits for those who had none."""
    account, took = accounts.of("long"), []
    accounts.charge(account, 0.5)
    Work(clock, accounts, account, took, seconds=0.000_1, times=1)
    Work(clock, accounts, accounts.of("other"), took, seconds=0.000_1, times=1)
    turn(accounts, clock)
    assert took == ["other"]


def test_one_that_raises_does_not_keep_the_others_from_their_turn(clock):
    broken, took = [], []
    accounts = Accounts(clock, broken.append)

    class Bad:
        def serve(self, _until):
            raise ZeroDivisionError

    bad = Bad()
    accounts.ready(accounts.of("a"), bad)
    Work(clock, accounts, accounts.of("a"), took, seconds=0.000_1, times=1)
    turn(accounts, clock)
    assert (broken, took) == ([bad], ["a"])


def test_what_is_spent_is_charged_in_microseconds(accounts, clock):
    account = accounts.of("a")
    account.loop_bucket = TokenBucket(1_000_000, clock.now)
    took = []
    Work(clock, accounts, account, took, seconds=0.001, times=5)
    while accounts.is_busy:
        turn(accounts, clock)
    accounts.charge(account, 0.002)  # a slice of long work, answers that leave
    accounts.end_turn(clock.now)
    assert account.loop_bucket.charged_bytes == pytest.approx(7_000, abs=10)
    assert account.spent_s == pytest.approx(0.007)


def test_the_end_of_a_turn_is_paid_by_who_sent(accounts):
    a, b = accounts.of("a"), accounts.of("b")
    accounts.brought(a, 3_000)
    accounts.brought(b, 1_000)
    accounts.charge_turn_end(0.004)
    assert (a.deficit_s, b.deficit_s) == (pytest.approx(-0.003), pytest.approx(-0.001))
    accounts.charge_turn_end(0.004)
    assert a.deficit_s == pytest.approx(-0.003), "and only for their own turn"


def test_who_sent_in_a_turn_that_writes_nothing_does_not_pay_for_the_next(accounts, clock):
    large, small = accounts.of("large"), accounts.of("small")
    accounts.brought(large, 4_000_000)
    accounts.end_turn(clock.now)
    accounts.brought(small, 1_000)
    accounts.charge_turn_end(0.001)
    accounts.end_turn(clock.now)
    assert (large.spent_s, small.spent_s) == (0, pytest.approx(0.001))


def test_a_turn_that_ends_while_one_is_served_is_paid_once_and_by_who_sent(accounts, clock):
    """The arena is full where one more byte comes, whoever sends it."""
    large, small = accounts.of("large"), accounts.of("small")
    accounts.brought(large, 4_000_000)

    def is_served():
        clock.now += 0.000_1
        accounts.charge_turn_end(0.03)
        clock.now += 0.03

    accounts.ready(small, is_served)
    turn(accounts, clock)
    assert large.spent_s == pytest.approx(0.03)
    assert small.spent_s == pytest.approx(0.000_1)


# --- memory -----------------------------------------------------------------------------------------------------------


def holders(accounts, clock, account, *sizes):
    made = []
    for size in sizes:
        holder = Work(clock, accounts, account, [], seconds=0, times=1)
        made.append(holder)
        accounts.hold(account, holder, size)
    return made


def test_above_its_budget_the_connection_that_holds_most_goes_and_is_counted(accounts, clock):
    account = accounts.of("a")
    small, large, last = holders(accounts, clock, account, 1_000, ACCOUNT_BYTES - 2_000, 1_500)
    assert (small.is_cut, large.is_cut, last.is_cut) == (False, True, False)
    assert (account.held_bytes, account.cut_connections) == (2_500, 1)


def test_the_budget_of_one_is_not_anothers(accounts, clock):
    [held] = holders(accounts, clock, accounts.of("a"), ACCOUNT_BYTES)
    [other] = holders(accounts, clock, accounts.of("b"), ACCOUNT_BYTES)
    assert not held.is_cut
    assert not other.is_cut


def test_when_all_together_hold_too_much_the_largest_of_the_largest_goes(accounts, clock, monkeypatch):
    monkeypatch.setattr(module, "ALL_ACCOUNTS_BYTES", 1_000)
    [first, second] = holders(accounts, clock, accounts.of("a"), 400, 300)
    [other] = holders(accounts, clock, accounts.of("b"), 200)
    [internal] = holders(accounts, clock, accounts.internal, 5_000)
    assert not any(each.is_cut for each in (first, second, other, internal)), "the cluster's own does not count"
    [late] = holders(accounts, clock, accounts.of("c"), 150)
    assert [each.is_cut for each in (first, second, other, internal, late)] == [True, False, False, False, False]


def test_above_half_of_it_nothing_begins_until_there_is_room(accounts, clock):
    account, fed = accounts.of("a"), []
    [holder] = holders(accounts, clock, account, ACCOUNT_BYTES // 2 + 1)
    assert account.is_short
    account.when_there_is_room(lambda: fed.append(1))
    accounts.hold(account, holder, -1)
    assert fed == [1]
    assert not account.is_short


def test_an_account_that_is_forgotten_while_it_holds_something_is_still_counted(accounts, clock):
    account = accounts.of("a")
    [holder] = holders(accounts, clock, account, 10)
    accounts.forget("a")
    assert accounts.of("a") is account
    accounts.hold(account, holder, -10)
    accounts.forget("a")
    assert accounts.of("a") is not account


# --- instances that are gone ------------------------------------------------------------------------------------------


def test_an_account_that_is_forgotten_leaves_nothing_behind_whatever_comes_late(accounts, clock):
    account = accounts.of("a")
    account.loop_bucket = TokenBucket(MICROSECONDS, clock.now)
    [holder] = holders(accounts, clock, account, 1_000)
    turn(accounts, clock)
    accounts.forget("a")
    assert accounts.all() == [accounts.internal, account], "it still counts for all accounts together"
    accounts.hold(account, holder, -1_000)
    assert accounts.all() == [accounts.internal]
    accounts.charge(accounts.known("a"), 0.5)  # a slice of its long work, a fetch that is woken
    accounts.end_turn(clock.now)
    assert accounts.all() == [accounts.internal]
    assert accounts.known("a") is not account


def test_an_instance_that_is_back_has_an_account_of_its_own(accounts, clock):
    first = accounts.of("a")
    [holder] = holders(accounts, clock, first, 1_000)
    accounts.forget("a")
    assert accounts.of("a") is first, "as long as something is held"
    accounts.hold(first, holder, -1_000)
    assert accounts.all() == [accounts.internal, first]
    accounts.forget("a")
    assert accounts.of("a") is not first


def test_what_an_account_has_used_is_known_by_its_name_and_nothing_of_one_that_is_not_there():
    accounts = Accounts(lambda: 1.0, lambda _work: None)
    account = accounts.of("tenant01")
    accounts.charge(account, 0.25)
    accounts.end_turn(1.0)
    assert (accounts.spent_s("tenant01"), accounts.spent_s("nobody00")) == (0.25, 0.0)
    accounts.forget("tenant01")
    assert accounts.spent_s("tenant01") == 0.0
