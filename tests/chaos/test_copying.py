"""The copy of `--copy`: it is under way when a fault strikes, and what it has to find it finds."""

import pytest

from tests.chaos import __main__ as chaos
from tests.chaos.copying import IDLE, STAYS, STUCK_S, is_idle, portions


@pytest.mark.parametrize(("records", "rounds"), [(1_000_000, 20), (10, 3), (7, 7), (2, 3), (5, 1)])
def test_portions_are_all_records_once_in_order_and_of_one_size(records, rounds):
    made = portions(records, rounds)
    assert [number for portion in made for number in portion] == list(range(records))
    assert len(made) == rounds
    assert {len(portion) for portion in made} <= {records // rounds, -(-records // rounds)}


@pytest.mark.parametrize(
    ("committed", "idle"), [(0, False), (6_000, False), (8_333, False), (8_334, True), (10_000, True)]
)
def test_copiers_are_idle_when_no_more_is_left_than_they_have_in_their_hands(committed, idle):
    assert is_idle(10_000, committed, in_flight=2 * 833) == idle


def copied(tmp_path, monkeypatch, capsys, *options):
    monkeypatch.setattr(chaos, "REPORTS", tmp_path)
    status = chaos.main(["--copy", "4000", "--seed", "1", *options])
    return status, capsys.readouterr().out


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.timeout(400)
def test_two_rounds_copy_each_record_once(tmp_path, monkeypatch, capsys):
    status, said = copied(tmp_path, monkeypatch, capsys, "--rounds", "2")
    assert "each record is there once" in said
    assert status == 0


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (IDLE, "round 1, leader: the copiers had nothing to do"),
        (STAYS, "partition 0: the last stable offset stood at "),
    ],
)
def test_what_is_planted_is_found(tmp_path, monkeypatch, capsys, plant, found):
    status, said = copied(tmp_path, monkeypatch, capsys, "--rounds", "1", "--plant", plant)
    assert found in said
    assert (f"and may for {STUCK_S:.0f}" in said) == (plant == STAYS)
    assert "doubled" not in said
    assert status == 1
    assert not list(tmp_path.iterdir()), "figures of a planted fault are nobody's"
