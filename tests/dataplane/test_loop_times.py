"""What a broker tells of its loop's time: of each window once, by instance, beside how long its requests took."""

from __future__ import annotations

from types import SimpleNamespace

from dataplane.flow import loop_times as module
from dataplane.flow.loop_times import LoopTimes
from dataplane.flow.windows import RequestWindows
from dataplane.protocol.api import ApiKey
from dataplane.tenancy.request_figures import RequestFigures
from quota.contracts.loop_time import MOST_WINDOWS, LoopUse, LoopWindow
from quota.contracts.requests import ApiCounts, RequestCounts
from quota.steps import run_through

NOON = 1_740_830_400


class World:
    def __init__(self):
        self.worked = {}
        self.at = 100.0
        self.times = LoopTimes(lambda account: self.worked.get(account, 0.0), lambda: self.at)

    def window(self, at, seconds=10.0, **spent):
        """Ten seconds in which the loop worked so long for each; their requests were as quick as can be."""
        self.at += seconds
        for account, seconds_more in spent.items():
            self.worked[account] = self.worked.get(account, 0.0) + seconds_more
            self.times.note(f"ins-{account}", account, None)
        self.times.close(at, set(self.worked))


def counts(api, *us):
    found = ApiCounts()
    for each in us:
        found.at_once.observe(each)
    return RequestCounts({api: found})


def test_a_window_says_what_the_loop_worked_for_each_and_how_long_it_was():
    world = World()
    world.window(NOON, 10.5, one=0.25, two=2.0)
    assert world.times.take() == {
        NOON: LoopWindow(
            10_500_000, 2_250_000, {"ins-one": LoopUse(250_000, 0, 0), "ins-two": LoopUse(2_000_000, 0, 0)}
        )
    }
    assert world.times.take() == {}, "once"


def test_each_window_has_its_own_time():
    world = World()
    world.window(NOON, one=0.25)
    world.window(NOON + 10, one=0.5)
    first, second = world.times.take().values()
    assert (first.rows["ins-one"].own_us, second.rows["ins-one"].own_us) == (250_000, 500_000)
    assert second.elapsed_us == 10_000_000


def test_latencies_are_of_the_local_part_of_produce_and_fetch():
    world = World()
    world.times.note("ins-one", "one", counts("Produce", *[1_000] * 200))
    world.times.note("ins-two", "two", counts("Fetch", *[20_000] * 200))
    world.times.note("ins-three", "three", counts("Metadata", 1_000_000))
    world.at += 10
    world.times.close(NOON, set())
    rows = world.times.take()[NOON].rows
    assert 900 <= rows["ins-one"].produce_p99_us <= 1_000
    assert rows["ins-one"].fetch_p99_us == 0
    assert 16_000 <= rows["ins-two"].fetch_p99_us <= 20_000
    assert "ins-three" not in rows


def test_of_a_few_requests_nothing_is_said_of_99_in_a_hundred():
    world = World()
    world.worked = {"few": 1.0, "some": 1.0}
    world.times.note("ins-few", "few", counts("Fetch", *[1_000] * 18, 500_000))
    world.times.note("ins-some", "some", counts("Fetch", *[1_000] * 20))
    world.at += 10
    world.times.close(NOON, set(world.worked))
    rows = world.times.take()[NOON].rows
    assert rows["ins-few"].fetch_p99_us == 0
    assert rows["ins-some"].fetch_p99_us > 0


def test_a_window_of_a_moment_goes_with_the_next():
    world = World()
    world.window(NOON, 0.9, one=0.5)
    assert world.times.take() == {}
    world.window(NOON + 10, 9.1, one=0.25)
    assert world.times.take() == {NOON + 10: LoopWindow(10_000_000, 750_000, {"ins-one": LoopUse(750_000, 0, 0)})}


def test_who_used_nothing_is_left_out_and_a_window_of_nobody_is_not_told():
    world = World()
    world.window(NOON, one=0.0)
    assert world.times.take() == {}


def test_an_account_that_was_made_anew_begins_at_nothing():
    world = World()
    world.window(NOON, one=5.0)
    world.worked["one"] = 0.0
    world.window(NOON + 10, one=0.5)
    assert world.times.take()[NOON + 10].rows["ins-one"].own_us == 500_000


def test_what_was_noted_of_a_report_that_was_given_up_goes_with_the_next():
    world = World()
    world.worked["one"] = 1.0
    world.times.note("ins-one", "one", counts("Fetch", *[20_000] * 200))
    world.window(NOON + 10, one=0.5)
    use = world.times.take()[NOON + 10].rows["ins-one"]
    assert use.own_us == 1_500_000
    assert use.fetch_p99_us > 0


def test_there_are_bounds(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    world = World()
    for number in range(MOST_WINDOWS + 3):
        world.window(NOON + 10 * number, little=0.1, much=3.0, some=1.0)
    told = world.times.take()
    assert sorted(told) == [NOON + 10 * number for number in range(3, MOST_WINDOWS + 3)]
    last = told[NOON + 10 * (MOST_WINDOWS + 2)]
    assert set(last.rows) == {"ins-much", "ins-some"}
    assert last.all_us == 4_100_000, "the others are in the sum"


def test_accounts_that_are_gone_are_forgotten():
    world = World()
    world.window(NOON, one=1.0, two=1.0)
    world.at += 10
    world.times.close(NOON + 10, {"one"})
    assert set(world.times._worked) == {"one"}


def test_windows_of_requests_bring_it_about():
    worked, at = {"key": 0.0}, [0.0]
    times = LoopTimes(lambda account: worked.get(account, 0.0), lambda: at[0])
    instance = SimpleNamespace(
        spec=SimpleNamespace(id="ins-key"), names=SimpleNamespace(key="key"), figures=RequestFigures()
    )
    now_s = [NOON + 3]
    windows = RequestWindows(lambda: [instance], lambda: now_s[0] * 1000, None, times)
    for _ in range(20):
        instance.figures.answered(ApiKey.PRODUCE, 0.038)
    worked["key"], at[0], now_s[0] = 0.4, 10.0, NOON + 11
    run_through(windows.report_steps(is_whole=False))
    window = times.take()[NOON]
    assert (window.elapsed_us, window.all_us) == (10_000_000, 400_000)
    assert 30_000 < window.rows["ins-key"].produce_p99_us <= 40_000
    run_through(windows.report_steps(is_whole=False))
    assert times.take() == {}, "no window has ended since"
