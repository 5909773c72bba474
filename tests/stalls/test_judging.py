"""What is beyond the limits, and what is noise."""

import pytest

from tests.stalls.judging import beside, is_chance, median_row, noise_ms, percentile, verdict
from tests.stalls.running import DISTURBED_ATTEMPTS, is_settled, undisturbed


def row(**members):
    stream = {"p50": 2.0, "p99": 5.0, "alone": 4.0, "ratio": 1.25}
    fine = {
        "turn_ms": None,
        "held_ms": 3.0,
        "acknowledged": stream,
        "consumed": stream,
        "errors": {},
        "resident_mib": 100.0,
        "died": False,
        "quiet_after_s": 0.1,
    }
    return {**fine, **members}


def stream(p99, alone):
    return {"p50": 1.0, "p99": p99, "alone": alone, "ratio": p99 / alone}


def test_nothing_is_wrong_within_the_limits():
    assert verdict(row(), {}) == []


@pytest.mark.parametrize(
    ("members", "wrong"),
    [
        ({"held_ms": 20.1}, ["turn"]),
        ({"turn_ms": 20.1}, ["turn"]),
        ({"turn_ms": 5.0, "held_ms": 90.0}, []),  # the broker's own word counts
        ({"consumed": stream(6.1, 4.0)}, ["p99"]),
        ({"acknowledged": stream(6.1, 4.0), "consumed": stream(9.0, 4.0)}, ["p99"]),
        ({"errors": {"timed out": 1}}, ["errors"]),
        ({"resident_mib": 1_025.0}, ["memory"]),
        ({"died": True, "quiet_after_s": None}, ["stuck"]),
        ({"quiet_after_s": None}, ["stuck"]),
    ],
)
def test_each_limit_has_its_word(members, wrong):
    assert verdict(row(**members), {}) == wrong


def test_a_p99_that_noise_explains_is_not_the_rows_doing():
    grown = row(consumed=stream(9.0, 4.0))
    assert verdict(grown, {"consumed": 5.5}) == []
    assert verdict(grown, {"consumed": 4.5}) == ["p99"]


def test_noise_does_not_hide_a_long_turn():
    assert verdict(row(held_ms=25.0), {"acknowledged": 100.0, "consumed": 100.0}) == ["turn"]


def test_a_row_is_compared_with_the_last_windows():
    assert beside([50.0, 50.0, 1.0, 2.0, 9.0, 3.0, 2.0]) == 2.0


def test_a_slow_drift_is_no_noise():
    assert noise_ms([float(n) for n in range(100)]) <= 2.0


def test_single_slow_windows_are_noise():
    assert noise_ms([2.0, 2.0, 9.0] * 20) == 7.0


def test_one_paused_window_of_twelve_is_not_the_noise_of_all_rows():
    assert noise_ms([2.0, 2.1, 60.0, 2.0, 2.2, 2.0, 2.1, 2.0, 2.1, 2.0, 2.0, 2.1]) < 0.3


def test_of_two_windows_nothing_can_be_said():
    assert noise_ms([1.0, 9.0]) == 0.0


def test_the_percentile_of_a_hundred_is_the_last_but_one_or_the_last():
    assert percentile(list(range(100)), 0.99) == 99
    assert percentile([3.0], 0.5) == 3.0
    assert percentile([], 0.99) == 0.0


def test_one_pause_of_three_is_the_machines():
    attempts = [row(held_ms=52.0, acknowledged=stream(90.0, 4.0)), row(held_ms=6.0), row(held_ms=5.0)]
    assert verdict(median_row(attempts), {}) == []
    assert median_row(attempts)["held_ms"] == 6.0


def test_two_long_turns_of_three_are_the_rows():
    assert verdict(median_row([row(held_ms=52.0), row(held_ms=3.0), row(held_ms=21.0)]), {}) == ["turn"]


def test_two_attempts_that_are_both_beyond_settle_it():
    assert verdict(median_row([row(held_ms=52.0), row(held_ms=21.0)]), {}) == ["turn"]
    assert verdict(median_row([row(held_ms=52.0), row(held_ms=6.0)]), {}) == []  # a third is needed


@pytest.mark.parametrize(
    ("held", "settled"),
    [([5.0], True), ([30.0], False), ([30.0, 40.0], True), ([30.0, 5.0], False), ([30.0, 5.0, 5.0], True)],
)
def test_a_row_is_measured_again_while_that_could_change_the_verdict(held, settled):
    attempts = [row(held_ms=each) for each in held]
    for attempt in attempts:
        attempt["wrong"] = verdict(attempt, {})
    whole = median_row(attempts)
    whole["wrong"] = verdict(whole, {})
    assert is_settled({**whole, "attempts": attempts} if len(held) > 1 else whole) is settled


@pytest.mark.parametrize("wrong", [["errors"], ["stuck"]])
def test_what_no_other_attempt_can_excuse_is_settled(wrong):
    assert is_settled(row(wrong=wrong))


def test_the_most_memory_of_all_attempts_counts():
    assert median_row([row(), row(resident_mib=900.0), row()])["resident_mib"] == 900.0


@pytest.mark.parametrize("wrong", [["errors"], ["turn", "errors"], ["memory"], ["stuck"], ["not run"]])
def test_what_is_no_matter_of_chance_is_not_measured_again(wrong):
    assert not is_chance(wrong)
    assert is_chance(["turn", "p99"])


def attempt(wrong, stolen):
    return row(wrong=wrong, stolen_percent=stolen)


def test_an_attempt_that_the_host_disturbed_is_made_again_and_does_not_count():
    attempts = iter([attempt(["p99"], 20.0), attempt(["turn", "p99"], 5.1), attempt(["p99"], 1.0), attempt([], 0.0)])
    found = undisturbed(lambda: next(attempts))
    assert (found["wrong"], found["stolen_percent"]) == (["p99"], 1.0)
    assert [each["stolen_percent"] for each in found["disturbed"]] == [20.0, 5.1]


@pytest.mark.parametrize("wrong", [[], ["errors"], ["p99", "memory"]])
def test_what_is_well_or_no_matter_of_chance_counts_however_much_was_stolen(wrong):
    attempts = iter([attempt(wrong, 50.0)])
    assert undisturbed(lambda: next(attempts))["wrong"] == wrong


def test_where_the_machine_is_never_still_the_least_disturbed_attempt_counts():
    shares = [9.0, 6.0, *[7.0] * (DISTURBED_ATTEMPTS - 2)]
    attempts = (attempt(["p99"], share) for share in shares)
    found = undisturbed(lambda: next(attempts))
    assert found["stolen_percent"] == 6.0
    assert len(found["disturbed"]) == DISTURBED_ATTEMPTS - 1
