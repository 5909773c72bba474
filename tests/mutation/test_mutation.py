"""What a run of mutants says: which are known, which are news, and when it is content."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.__main__ import sample
from tests.mutation.areas import AREAS
from tests.mutation.report import Shown, summary, table
from tests.mutation.survivors import Change, change_of, function_of, gone, listed

ROOT = Path(__file__).parents[2]
DIFFERENCE = """--- quota/core/fence.py
+++ quota/core/fence.py
@@ -1,4 +1,4 @@
 def room(used: int, limit: int) -> int:
-    left = limit - used
+    left = limit + used
     return left
"""
CHANGE = Change("quota.core.fence.room", "left = limit - used", "left = limit + used")
OTHER = Change("quota.core.fence.room", "return left", "return None")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("quota.core.fence.x_room__mutmut_7", "quota.core.fence.room"),
        ("quota.core.fence.x__hidden__mutmut_12", "quota.core.fence._hidden"),
        ("quota.core.ledger.xǁLedgerǁ__init____mutmut_1", "quota.core.ledger.Ledger.__init__"),
    ],
)
def test_a_mutant_is_of_a_function(name, function):
    assert function_of(name) == function


def test_a_mutant_is_known_by_its_lines():
    assert change_of("quota.core.fence.x_room__mutmut_7", DIFFERENCE) == CHANGE


def test_a_larger_sample_has_the_smaller_one_in_it_and_each_area_its_share():
    mutants = {"a": [f"a{n}" for n in range(300)], "b": [f"b{n}" for n in range(100)]}
    small, large = sample(mutants, 20, seed=7), sample(mutants, 80, seed=7)
    assert [len(small[area]) for area in mutants] == [15, 5]
    assert all(set(small[area]) < set(large[area]) for area in mutants)
    assert small == sample(mutants, 20, seed=7) != sample(mutants, 20, seed=8)
    assert {area: set(names) for area, names in sample(mutants, 0, seed=7).items()} == {
        area: set(names) for area, names in mutants.items()
    }


def test_a_survivor_that_nobody_has_read_is_a_finding():
    shown = {"quota": Shown(100, 100, 100, (CHANGE,))}
    found = summary(shown, {}, [])
    assert not found["clean"]
    assert "SURVIVED quota.core.fence.room\n    - left = limit - used\n    + left = limit + used" in table(found)
    assert summary(shown, {CHANGE: "it is the same"}, [])["clean"]


def test_a_row_that_nothing_survives_for_is_one_as_well():
    reasons = {CHANGE: "it is the same", OTHER: "nobody asks"}
    assert gone(reasons, [CHANGE]) == [OTHER]
    assert not summary({"quota": Shown(100, 100, 100, (CHANGE,))}, reasons, [OTHER])["clean"]


def test_a_row_may_be_of_a_whole_function():
    reasons = {Change(CHANGE.function, "*", "*"): "it runs at import"}
    assert summary({"quota": Shown(100, 100, 100, (CHANGE, OTHER))}, reasons, [])["clean"]
    assert gone(reasons, [CHANGE]) == []
    assert gone(reasons, []) == list(reasons)


@pytest.mark.parametrize(("survivors", "clean"), [(10, True), (11, False)])
def test_nine_in_ten_have_to_be_caught_however_many_are_listed(survivors, clean):
    changes = tuple(Change("f", str(number), "") for number in range(survivors))
    found = summary({"quota": Shown(1000, 100, 100, changes)}, dict.fromkeys(changes, "a reason"), [])
    assert (found["caught"], found["clean"]) == (100 - survivors, clean)


def test_of_each_area_only_where_all_were_tried():
    changes = tuple(Change("f", str(number), "") for number in range(2))
    reasons = dict.fromkeys(changes, "a reason")
    other = Shown(100, 100, 100, ())
    assert summary({"small": Shown(100, 10, 10, changes), "other": other}, reasons, [])["clean"]
    assert not summary({"small": Shown(10, 10, 10, changes), "other": other}, reasons, [])["clean"]


def test_what_there_was_no_time_for_is_said():
    assert not summary({"quota": Shown(100, 50, 49, ())}, {}, [])["complete"]
    assert "NO TIME" in table(summary({"quota": Shown(100, 50, 49, ())}, {}, []))


def test_every_row_of_the_list_has_a_reason_and_a_function_that_is_changed():
    changed = {path for area in AREAS.values() for pattern in area.changed for path in ROOT.glob(pattern)}
    modules = {str(path.relative_to(ROOT).with_suffix("")).replace("/", ".") for path in changed}
    for change, why in listed().items():
        assert len(why.split()) > 2, change
        assert any(change.function.startswith(f"{module}.") for module in modules), change


def test_every_area_has_code_and_tests():
    for area in AREAS.values():
        assert all(list(ROOT.glob(pattern)) for pattern in area.changed)
        assert all((ROOT / path).exists() for path in area.tests)
