"""The journal of throttled intervals: append, read by position, restart, limits."""

import json
import os

import pytest

from quota.master.journal import ELASTIC, KEPT_BILLED_S, KEPT_S, Journal

BEGAN = 1_763_715_600.0


@pytest.fixture
def clock():
    return [BEGAN]


@pytest.fixture
def journal(tmp_path, clock):
    opened = []

    def journal(**limits):
        for other in opened:
            other.close()
        opened.append(Journal(tmp_path / "master-1", clock=lambda: clock[0], **limits))
        return opened[-1]

    yield journal
    opened[-1].close()


def line(number, padding=0):
    return json.dumps({"number": number, "padding": "x" * padding}).encode()


def numbers(journal, position=0):
    """Everything from a position on, and where it ends."""
    found = []
    while True:
        lines, following = journal.read(position)
        found += [each["number"] for each in lines]
        if following == position:
            return found, position
        position = following


def test_what_was_appended_is_read_in_order_and_goes_on_where_it_ended(journal):
    kept = journal()
    kept.append([line(1), line(2)])
    found, position = numbers(kept)
    assert found == [1, 2]
    assert kept.read(position) == ([], position)
    kept.append([line(3)])
    assert numbers(kept, position)[0] == [3]


def test_an_empty_journal_answers_nothing_and_makes_no_file(journal, tmp_path):
    kept = journal()
    kept.append([])
    assert numbers(kept)[0] == []
    assert list((tmp_path / "master-1").iterdir()) == []


def test_a_restart_goes_on_behind_what_was_there(journal):
    kept = journal()
    kept.append([line(1)])
    _, position = numbers(kept)
    again = journal()
    assert numbers(again, position) == ([], position)
    again.append([line(2)])
    assert numbers(again)[0] == [1, 2]
    assert numbers(again, position)[0] == [2]


def test_a_line_that_a_killed_master_left_unfinished_is_stepped_over(journal, tmp_path):
    journal().append([line(1)])
    (segment,) = (tmp_path / "master-1").iterdir()
    segment.write_bytes(segment.read_bytes() + line(2)[:7])
    again = journal()
    _, position = numbers(again)
    again.append([line(3)])
    assert numbers(again)[0] == [1, 3]
    assert numbers(again, position)[0] == [3]


def test_long_journals_are_read_page_by_page_over_segments(journal):
    kept = journal(segment=1000)
    for number in range(40):
        kept.append([line(number, padding=100)])
    position, found, pages = 0, [], 0
    while True:
        lines, following = kept.read(position, 300)
        if following == position:
            break
        found += [each["number"] for each in lines]
        position, pages = following, pages + 1
    assert found == list(range(40))
    assert pages >= 20


def test_the_oldest_segments_go_when_there_is_too_much(journal):
    kept = journal(segment=1000, most=3000)
    for number in range(100):
        kept.append([line(number, padding=100)])
    found, _ = numbers(kept)
    assert found == list(range(found[0], 100))
    assert 3000 / 130 - 10 < len(found) < 4200 / 100


def test_segments_older_than_a_week_go(journal, tmp_path, clock):
    journal().append([line(1)])
    (segment,) = (tmp_path / "master-1").iterdir()
    os.utime(segment, (BEGAN, BEGAN))
    clock[0] += KEPT_S + 1
    kept = journal()
    kept.append([line(2)])
    assert numbers(kept)[0] == [2]


def test_a_journal_that_begins_anew_stands_above_every_position_of_the_old_one(journal, tmp_path, clock):
    kept = journal()
    kept.append([line(1, padding=10_000)])
    _, position = numbers(kept)
    kept.close()
    for segment in (tmp_path / "master-1").iterdir():
        segment.unlink()
    clock[0] += 1
    anew = journal()
    anew.append([line(2)])
    assert numbers(anew, position)[0] == [2]


def test_a_position_in_the_middle_of_a_line_gives_the_lines_behind_it(journal):
    kept = journal()
    kept.append([line(1), line(2)])
    first = int(BEGAN * 1_000_000)
    assert numbers(kept, first + 3)[0] == [2]


def test_journals_of_different_names_share_a_directory(tmp_path, clock):
    throttled = Journal(tmp_path, clock=lambda: clock[0])
    elastic = Journal(tmp_path, clock=lambda: clock[0], name=ELASTIC, kept_s=KEPT_BILLED_S)
    throttled.append([line(1)])
    elastic.append([line(2)])
    assert (numbers(throttled)[0], numbers(elastic)[0]) == ([1], [2])
    for opened in (throttled, elastic):
        opened.close()
    assert numbers(Journal(tmp_path, clock=lambda: clock[0], name=ELASTIC))[0] == [2]
