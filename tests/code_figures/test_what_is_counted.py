"""What the figures count, on trees of a few lines; and what this tree keeps to."""

from __future__ import annotations

from tests import code_figures
from tests.code_figures import Count, figures

STATE = "class State:\n    __slots__ = ('a', 'b')\n"
READING = "from p.state import State\nclass Reading(State):\n    def read(self): self.d = self.a\n"
WRITING = "from p.state import State\nclass Writing(State):\n    def write(self): self.c, self.a = 1, 2\n"
WHOLE = "from p.reading import Reading\nfrom p.writing import Writing\nclass Whole(Reading, Writing): pass\n"
PIECES = {"p/state.py": STATE, "p/reading.py": READING, "p/writing.py": WRITING, "p/whole.py": WHOLE}


def test_a_class_has_what_it_inherits_once():
    assert figures(PIECES).largest_class == Count(4, "p/whole.py Whole")


def test_slots_declarations_and_assignments_to_self_are_attributes():
    one = (
        "class A:\n    x: int\n    __slots__ = ('y',)\n    def f(self):\n        self.z: int = 1\n        self.z += 1\n"
    )
    assert figures({"p/a.py": one}).largest_class.count == 3


def test_values_do_not_count_as_large_classes():
    value = "@dataclass(frozen=True)\nclass V:\n    a: int\n    b: int\nclass S:\n    def f(self): self.a = 1\n"
    assert figures({"p/a.py": value}).largest_class == Count(1, "p/a.py S")


def test_one_class_in_pieces_is_spread_over_their_files():
    assert figures(PIECES).spread_classes == (Count(4, "p/whole.py Whole"),)


def test_a_base_of_two_classes_is_no_piece_of_either():
    other = "from p.state import State\nclass Other(State): pass\n"
    found = figures({**PIECES, "p/other.py": other}).spread_classes
    assert found == (Count(3, "p/whole.py Whole"),), "its state is somebody else's as well"


def test_a_base_that_is_made_by_itself_is_no_piece():
    assert figures({**PIECES, "p/use.py": "from p.state import State\nState()\n"}).spread_classes[0].count == 3


def test_a_class_of_the_same_name_elsewhere_is_another():
    other = "class Reading:\n    def f(self): self.q = self.r = 1\n"
    assert figures({**PIECES, "q/reading.py": other}).largest_class == Count(4, "p/whole.py Whole")


def test_a_nested_class_whose_base_has_its_name_is_not_its_own_base():
    nested = "class A:\n    class Meta:\n        x = 1\nclass B(A):\n    class Meta(A.Meta):\n        y: int\n"
    assert figures({"p/a.py": nested + "    def f(self): pass\n"}).largest_class == Count(1, "p/a.py Meta")


def test_files_and_functions_are_counted_in_lines():
    one = "def short(): pass\n\nclass A:\n    def long(self):\n        a = 1\n\n        return a\n"
    found = figures({"p/a.py": one, "p/b.py": "\n"})
    assert (found.longest_file, found.longest_function) == (Count(7, "p/a.py"), Count(4, "p/a.py:4 long"))


def test_anys_and_ignores_are_counted_in_code_and_in_comments():
    ignored = 'x: Any = f()  # type: ignore[misc]\ny = "# type: ignore"\n'
    one = f'from typing import Any\n"""Any"""\n{ignored}class A: pass\ndef f(): pass\n'
    found = figures({"p/a.py": one})
    assert (found.anys, found.ignores) == (1, 1)


def test_a_folder_is_full_above_fifteen_files():
    files = {f"p/{number}.py": "class A: pass\ndef f(): pass\n" for number in range(15)}
    assert figures(files).full_folders == ()
    assert figures({**files, "p/more.py": ""}).full_folders == (Count(16, "p"),)


def test_migrations_and_tests_do_not_count():
    paths = ["dataplane/a.py", "tests/dataplane/a.py", "controlplane/billing/migrations/0001_initial.py", "quota/a.txt"]
    assert [path for path in paths if code_figures.counts(path)] == ["dataplane/a.py"]


def test_a_log_is_one_class_in_one_file():
    spread = [count.where for count in figures(code_figures.here()).spread_classes]
    assert not [where for where in spread if where.startswith("dataplane/storage/log/")]
