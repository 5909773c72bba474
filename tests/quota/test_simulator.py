"""The simulator: its figures are right on runs made by hand, and what it shows of the strategies is what is known of them."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.instance import MIB
from quota.simulator import __main__ as simulator
from quota.simulator.demand import SCENARIOS, recorded
from quota.simulator.figures import fair_shares, figures
from quota.simulator.run import STATIC, Trace, run

LIMIT = 30 * MIB
demands = st.lists(st.floats(0, 1000), min_size=1, max_size=8)


@given(demands, st.floats(1, 1000))
def test_fair_shares_use_all_there_is_and_favour_nobody(demand, limit):
    shares = fair_shares(demand, limit)
    assert sum(shares) == pytest.approx(min(limit, sum(demand)))
    level = max(shares)
    for share, wanted in zip(shares, demand, strict=True):
        assert share <= wanted
        assert share == pytest.approx(wanted) or share == pytest.approx(level)


def by_hand(admitted, demanded, *, throttled=None, limit=100):
    return Trace("by hand", "none", limit, admitted, demanded, throttled or [False] * len(admitted))


def test_over_admission_is_the_worst_window():
    judged = figures(by_hand([[50], [150], [150]] + [[100]] * 8, [[200]] * 11))
    assert judged.over_admission == {1: pytest.approx(50), 10: pytest.approx(10)}


def test_utilisation_counts_only_what_was_possible():
    assert figures(by_hand([[30], [50]], [[30], [200]])).utilisation == pytest.approx(100 * 80 / 130)


def test_a_run_has_converged_when_every_broker_is_near_its_fair_share():
    trace = by_hand([[0, 0], [90, 10], [70, 30], [51, 49], [50, 50]], [[0, 0]] + [[200, 200]] * 4)
    assert figures(trace, [1.0]).convergence_periods == 2


def test_what_never_converges_counts_until_the_end():
    assert figures(by_hand([[90, 10]] * 6, [[200, 200]] * 6), [1.0]).convergence_periods == 5


def test_waiting_below_the_limit_is_counted_and_waiting_at_it_is_not():
    trace = by_hand([[50], [100], [50], [95]], [[200]] * 4, throttled=[True, True, False, True])
    assert figures(trace).throttled_under == 25


def test_jain_is_one_where_all_get_their_share_and_one_half_where_one_of_two_gets_everything():
    assert figures(by_hand([[50, 50]], [[200, 200]])).fairness == pytest.approx(1)
    assert figures(by_hand([[100, 0]], [[200, 200]])).fairness == pytest.approx(0.5)


@pytest.mark.parametrize("strategy", ["ckafka", "bounded", STATIC])
def test_a_seed_replays(strategy):
    first, second = (run(SCENARIOS["random"](3, LIMIT, 20, Random(7)), LIMIT, strategy, Random(8)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("strategy", ["ckafka", "bounded"])
@pytest.mark.parametrize("name", ["step", "skew", "moving"])
def test_twice_the_limit_is_held_to_it_over_a_minute_and_used(name, strategy):
    scenario = SCENARIOS[name](3, LIMIT, 60, Random(1))
    judged = figures(run(scenario, LIMIT, strategy, Random(2)), scenario.changes)
    assert judged.over_admission[60] < 2
    assert judged.utilisation > 97


def test_static_quotas_waste_what_a_skewed_demand_cannot_use():
    scenario = SCENARIOS["skew"](10, LIMIT, 60, Random(1))
    static, documented = (figures(run(scenario, LIMIT, each, Random(2))) for each in (STATIC, "ckafka"))
    assert static.utilisation < 60
    assert documented.utilisation > 95


@pytest.mark.parametrize("strategy", ["ckafka", "bounded"])
def test_nobody_waits_under_a_light_demand(strategy):
    scenario = SCENARIOS["light"](3, LIMIT, 30, Random(3))
    assert figures(run(scenario, LIMIT, strategy, Random(4))).throttled_under == 0


def test_a_recorded_day_is_demand():
    scenario = recorded([[10, 20], [30, 40]])
    assert [scenario.demand(t) for t in (0.5, 1.5, 99)] == [[10, 20], [30, 40], [30, 40]]


def test_the_command_prints_a_line_for_each_and_writes_the_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["--scenarios", "step,light", "--brokers", "2", "--runs", "2", "--seconds", "12"]
    assert simulator.main(arguments) == 0
    rows = json.loads((tmp_path / simulator.REPORT).read_text())["rows"]
    assert [(row["scenario"], row["strategy"], row["runs"]) for row in rows] == [
        (name, strategy, 2) for name in ("step", "light") for strategy in simulator.STRATEGIES
    ]
    assert len(capsys.readouterr().out.splitlines()) == 1 + 6 + 1


def test_a_recorded_day_is_replayed_under_every_strategy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    day = tmp_path / "day.json"
    day.write_text(json.dumps({"limit": 20 * MIB, "rows": [[30 * MIB, 2 * MIB]] * 15}))
    assert simulator.main(["--replay", str(day)]) == 0
    rows = json.loads((tmp_path / simulator.REPORT).read_text())["rows"]
    assert {row["strategy"]: row["brokers"] for row in rows} == dict.fromkeys(simulator.STRATEGIES, 2)
    used = {row["strategy"]: row["utilisation_percent"] for row in rows}
    assert used["ckafka"] > used[STATIC]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--scenarios", "storm"], "no such name: storm"), (["--runs", "0"], "at least 1")],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        simulator.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_what_is_no_recorded_day_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(SystemExit, match="is not a recorded day"):
        simulator.main(["--replay", str(tmp_path / "nothing.json")])
