"""What of the lake's benchmark is no measurement: ranges in SQL, and the table."""

from tests.benchmarks.lake import _within, table


def test_a_range_of_offsets_in_sql():
    assert _within("3:5-30") == "(partition = 3 AND offset >= 5 AND offset < 30)"


def test_the_table_says_of_each_load_whether_it_is_equal():
    load = {"took_s": 61.0, "mb_per_s": 33.3, "is_equal": True}
    figures = {
        "disk_mb_per_s": 900.0,
        "consumer_mb_per_s": 210.0,
        "loads": {
            "load": load,
            "again": {"took_s": 9.0, "is_equal": True},
            "killed": {**load, "kills": 20, "is_equal": False},
        },
    }
    lines = [line.split() for line in table(figures).splitlines()]
    assert lines[1:] == [
        ["disk", "900.0"],
        ["consumer", "210.0"],
        ["load", "61.0", "33.3", "equal"],
        ["again", "9.0", "equal"],
        ["killed", "20x", "61.0", "33.3", "DIFFERENT"],
    ]
