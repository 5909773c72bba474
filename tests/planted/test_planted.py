"""The table of planted holes fits the code: each has its place, exactly one, and tests that are there."""

from __future__ import annotations

import ast

import pytest

from tests.planted import planting
from tests.planted.holes import HOLES
from tests.planted.planting import ROOT, Looked, MisfitError, changed


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.name)
def test_each_hole_fits_the_code_and_leaves_python(hole):
    text = (ROOT / hole.path).read_text()
    with_it = changed(hole, text)
    assert with_it != text
    assert ast.dump(ast.parse(with_it)) != ast.dump(ast.parse(text)), "it changes nothing"


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.name)
def test_each_hole_has_tests_that_are_there(hole):
    files = [each for each in hole.tests if each.startswith("tests/")]
    assert files
    for each in files:
        path, _, test = each.partition("::")
        defined = {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}
        assert not test or test in defined


def test_names_are_different_and_there_are_enough():
    names = [hole.name for hole in HOLES]
    assert len(set(names)) == len(names) >= 12


def test_a_place_that_is_not_there_or_twice_is_told():
    hole = HOLES[0]
    for text in ("nothing of it", hole.before * 2):
        with pytest.raises(MisfitError, match=hole.name):
            changed(hole, text)


@pytest.mark.parametrize(
    ("status", "is_found"), [(0, False), (1, True), (2, False), (planting.NO_TESTS, False), (-1, False)]
)
def test_only_tests_that_fail_find_a_hole(status, is_found):
    assert Looked(status, "", 0.0).failed == is_found


def test_a_hole_is_in_the_copy_for_as_long_as_it_is_looked_for(tmp_path):
    hole = HOLES[0]
    place = tmp_path / hole.path
    place.parent.mkdir(parents=True)
    place.write_text(f"first\n{hole.before}last\n")
    with planting.planted(hole, tmp_path):
        assert hole.after in place.read_text()
        assert hole.before not in place.read_text()
    assert place.read_text() == f"first\n{hole.before}last\n"
