"""What each sender has of a bucket that does not suffice: credit for an equal part, kept and owed within bounds."""

from types import SimpleNamespace

import pytest

from quota.core.shares import CREDIT_S, EVERYBODY, MOST, OWED_S, QUIET_S, Shares

ANN, BOB = ("ann", "10.0.0.1"), ("bob", "10.0.0.2")
RATE = 1_000.0


@pytest.fixture
def shares():
    return Shares()


def test_a_sender_has_one_share_and_another_client_id_or_address_another(shares):
    assert shares.of(ANN, 0.0) is shares.of(ANN, 1.0)
    others = [shares.of(sender, 0.0) for sender in (BOB, ("ann", "10.0.0.2"), ("bob", "10.0.0.1"))]
    assert len({id(share) for share in (shares.of(ANN, 0.0), *others)}) == len(shares) == 4
    assert next(iter(shares)) is shares.of(ANN, 0.0)


def test_one_alone_earns_the_rate_and_of_two_each_half_of_it(shares):
    ann = shares.of(ANN, 0.0)
    assert shares.earned(ann, RATE, 0.25) == 250
    shares.of(BOB, 0.25)
    assert shares.earned(ann, RATE, 0.25) == 250
    shares.use(ann, 250, RATE, 0.25)
    assert shares.earned(ann, RATE, 0.5) == 125
    assert shares.earned(ann, RATE, 0.5) == 125, "the same time is counted twice"


def test_no_more_is_kept_than_half_a_second_of_a_part(shares):
    ann = shares.of(ANN, 0.0)
    assert shares.earned(ann, RATE, 100.0) == RATE * CREDIT_S
    shares.of(BOB, 100.0)
    assert shares.earned(ann, RATE, 100.0) == RATE / 2 * CREDIT_S


def test_and_no_more_is_owed_than_half_a_minute_of_it(shares):
    ann = shares.of(ANN, 0.0)
    assert shares.use(ann, 300, RATE, 0.1) == pytest.approx(0.5), "until it has earned as much again"
    assert ann.credit == -200
    shares.use(ann, 100_000, RATE, 0.1)
    assert ann.credit == -RATE * OWED_S
    shares.of(BOB, 0.1)
    shares.use(ann, 100_000, RATE, 0.1)
    assert ann.credit == -RATE / 2 * OWED_S


def test_a_request_that_waits_is_covered_when_its_sender_has_earned_it(shares):
    ann = shares.of(ANN, 0.0)
    shares.of(BOB, 0.0)
    ann.line.append(SimpleNamespace(size=100))
    assert shares.covered(RATE, 0.0) == (None, pytest.approx(0.2))
    assert shares.covered(RATE, 0.2) == (ann, 0.0)


def test_who_waits_is_found_behind_those_who_do_not(shares):
    shares.of(ANN, 0.0)
    bob = shares.of(BOB, 0.0)
    bob.line.append(SimpleNamespace(size=100))
    assert shares.covered(RATE, 0.2) == (bob, 0.0)


def test_what_is_larger_than_can_be_kept_is_never_covered(shares):
    ann = shares.of(ANN, 0.0)
    ann.line.append(SimpleNamespace(size=RATE * CREDIT_S))
    assert shares.covered(RATE, 0.0) == (None, CREDIT_S)
    ann.line[0].size += 1
    assert shares.covered(RATE, 0.0) == (None, float("inf"))
    assert shares.covered(RATE, 100.0) == (None, float("inf"))


def test_what_is_used_of_credit_has_been_earned_already(shares):
    ann = shares.of(ANN, 0.0)
    assert shares.use(ann, 100, RATE, 0.25) == 0.0
    assert ann.credit == 150
    assert shares.use(ann, 75, RATE, 0.25) == 0.0, "as much again is there"
    assert shares.use(ann, 75, RATE, 0.25) == 0.075


def test_everybody_together_earns_nothing(shares):
    everybody = shares.of(EVERYBODY, 0.0)
    everybody.line.append(SimpleNamespace(size=1))
    assert shares.covered(RATE, 100.0) == (None, float("inf"))
    assert shares.first(RATE, 100.0) is everybody


def test_the_first_is_who_has_used_least_of_those_who_wait(shares):
    assert shares.first(RATE, 0.0) is None
    ann, bob = shares.of(ANN, 0.0), shares.of(BOB, 0.0)
    assert shares.first(RATE, 0.0) is None
    ann.line.append("a request")
    assert shares.first(RATE, 0.0) is ann
    bob.line.append("a request")
    shares.use(ann, 200, RATE, 0.0)
    assert shares.first(RATE, 0.1) is bob
    shares.use(bob, 300, RATE, 0.1)
    assert shares.first(RATE, 0.1) is ann
    assert ann.at == bob.at == 0.1


def test_who_is_quiet_for_longer_than_a_second_and_waits_for_nothing_is_forgotten(shares):
    ann, bob = shares.of(ANN, 0.0), shares.of(BOB, 0.0)
    bob.line.append("a request")
    shares.forget_quiet(QUIET_S)
    assert list(shares) == [ann, bob]
    shares.forget_quiet(QUIET_S + 0.1)
    assert list(shares) == [bob]
    shares.of(BOB, 1.5)
    bob.line.clear()
    shares.forget_quiet(2.5)
    assert list(shares) == [bob]
    shares.forget_quiet(2.6)
    assert len(shares) == 0


def test_senders_without_number_share_places_and_those_who_have_one_keep_it(shares):
    ann = shares.of(ANN, 0.0)
    for number in range(MOST - 1):
        shares.of((str(number), "a"), 0.0)
    assert len(shares) == MOST
    late = [shares.of((f"late {number}", "a"), 1.0) for number in range(5_000)]
    assert MOST + 1 < len(shares) <= 2 * MOST
    assert shares.of(("late 1", "a"), 2.0) is late[1]
    assert late[1].seen == 2.0
    assert shares.of(ANN, 1.0) is ann
