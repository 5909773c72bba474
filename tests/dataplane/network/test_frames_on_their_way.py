"""Memory for a frame of which only the beginning has come: by what the peer has sent, unless we have chosen the peer."""

import pytest

from dataplane.network.incomplete import (
    LARGE_FRAMES_BYTES,
    WHOLE_BELOW_BYTES,
    FramesBudget,
    IncompleteFrame,
    TooManyLargeFramesError,
)

LARGE = 64 * WHOLE_BELOW_BYTES
BEGINNING = memoryview(b"begun")


def test_a_small_frame_has_room_for_all_of_it_whoever_sends_it():
    for budget in (FramesBudget(), None):
        frame = IncompleteFrame(WHOLE_BELOW_BYTES, BEGINNING, budget)
        assert len(frame.memory) == WHOLE_BELOW_BYTES
        assert frame.memory[: frame.filled] == BEGINNING


def test_a_large_frame_of_a_client_gets_memory_as_its_bytes_arrive():
    budget = FramesBudget()
    frame = IncompleteFrame(LARGE, BEGINNING, budget)
    rooms = [len(frame.memory)]
    while rooms[-1] < LARGE:
        frame.memory[-1] = len(rooms)
        frame.grow()
        assert frame.memory[rooms[-1] - 1] == len(rooms), "what has come is kept"
        rooms.append(len(frame.memory))
    assert rooms == [WHOLE_BELOW_BYTES * 4**step for step in range(4)]
    assert budget.held_bytes == LARGE
    frame.free()
    assert budget.held_bytes == 0


def test_what_clients_announce_and_send_is_bounded_over_all_of_them():
    budget = FramesBudget()
    budget.take(LARGE_FRAMES_BYTES - WHOLE_BELOW_BYTES)
    with pytest.raises(TooManyLargeFramesError):
        IncompleteFrame(LARGE, BEGINNING, budget).grow()


def test_a_large_frame_of_a_broker_that_we_asked_gets_its_memory_at_once():
    frame = IncompleteFrame(LARGE, BEGINNING, None)
    assert len(frame.memory) == LARGE
    assert frame.memory[: frame.filled] == BEGINNING
