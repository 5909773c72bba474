"""Memory for a frame of which only the beginning has come: by what the peer has sent, unless we have chosen the peer."""

from dataplane.network.incomplete import AT_ONCE_BYTES, MAPPED_FROM_BYTES, WHOLE_BELOW_BYTES, IncompleteFrame
from dataplane.network.memory import LargeMemory

LARGE = 64 * WHOLE_BELOW_BYTES
BEGINNING = memoryview(b"begun")


def test_a_small_frame_has_room_for_all_of_it_whoever_sends_it():
    for is_chosen in (False, True):
        frame = IncompleteFrame(WHOLE_BELOW_BYTES, BEGINNING, lambda _: None, LargeMemory(), is_chosen=is_chosen)
        assert len(frame.memory) == WHOLE_BELOW_BYTES
        assert frame.memory[: frame.filled] == BEGINNING


def test_a_large_frame_of_a_client_gets_memory_as_its_bytes_arrive_and_says_so():
    held = []
    frame = IncompleteFrame(LARGE, BEGINNING, held.append, LargeMemory())
    rooms = [len(frame.memory)]
    come = bytearray(BEGINNING)
    is_whole = False
    while not is_whole:
        space = frame.free_space()
        assert 0 < len(space) <= AT_ONCE_BYTES
        part = bytes([len(come) // AT_ONCE_BYTES % 256]) * len(space)
        space[:] = part
        come += part
        del space
        is_whole = frame.received(len(part), held.append)
        assert is_whole or frame.is_in_reach == (LARGE - len(come) <= AT_ONCE_BYTES)
        if len(frame.memory) > rooms[-1]:
            rooms.append(len(frame.memory))
    assert frame.memory == come, "what has come is kept"
    assert rooms == [WHOLE_BELOW_BYTES * 4**step for step in range(4)]
    assert rooms[0] < MAPPED_FROM_BYTES < rooms[-1], "it grows in both kinds of memory"
    assert sum(held) == LARGE
    frame.free(held.append)
    assert sum(held) == 0


def test_a_large_frame_of_a_broker_that_we_asked_gets_its_memory_at_once():
    frame = IncompleteFrame(LARGE, BEGINNING, lambda _: None, LargeMemory(), is_chosen=True)
    assert len(frame.memory) == LARGE
    assert frame.memory[: frame.filled] == BEGINNING
