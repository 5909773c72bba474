"""Freed memory stays with the process, up to a bound: another frame of the same size finds its pages there."""

import subprocess
import sys
from pathlib import Path

import pytest

from dataplane.clock import SystemClock
from dataplane.network.loop import EpollLoop
from dataplane.network.memory import FROM_HEAP_BYTES, GIVEN_BACK_BYTES, KEPT_BYTES, LargeMemory

FAULTS = """
import resource, sys
if sys.argv[1] == "kept":  # else nothing of ours lies in the heap
    from dataplane.network.memory import keep_freed_memory
    if not keep_freed_memory():
        sys.exit("no mallopt")
frame = memoryview(bytearray(2 * 2**20))
for _ in range(5):
    bytes(frame), bytes(frame[::2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    held = [bytes(frame) for _ in range(8)]  # glibc by itself keeps two of them, or none: that depends on where its heap begins
    del held
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how):
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, timeout=60, check=False)
    if "no mallopt" in done.stderr:
        pytest.skip("not glibc")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_frames_of_the_same_size_take_their_pages_once():
    pages = 10 * 8 * 2 * 2**20 // 4096
    assert page_faults("kept") < pages / 10
    assert page_faults("by default") > pages / 2, "else there is nothing to be done here"


def test_what_is_kept_holds_some_large_frames_and_no_more():
    assert FROM_HEAP_BYTES < KEPT_BYTES <= 64 * 2**20


GIVEN_BACK = """
from dataplane.network.memory import KEPT_BYTES, keep_freed_memory
if not keep_freed_memory():
    raise SystemExit("no mallopt")
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
held = [bytes(2**20) + b"x" for _ in range(96)]
most = 0
while held:
    before = resident()
    held.pop()
    most = max(most, before - resident())
print(most)
"""


def test_memory_is_given_back_a_little_at_a_time():
    done = subprocess.run([sys.executable, "-c", GIVEN_BACK], capture_output=True, text=True, timeout=60, check=False)
    if "no mallopt" in done.stderr:
        pytest.skip("not glibc")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 8 * 2**20, "of 96 MiB, at one release"


def test_mapped_memory_grows_where_it_is():
    memory = LargeMemory().mapped(2**20)
    memory[:3] = b"abc"
    memory.resize(8 * 2**20)
    assert (len(memory), memory[:4], memory[-1]) == (8 * 2**20, b"abc\0", 0)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_what_nobody_has_any_more_goes_back_a_part_at_a_time():
    large = LargeMemory()
    frame = memoryview(large.mapped(32 * 2**20))
    frame[:] = bytes(len(frame))
    part = frame[5:10]
    del frame
    assert not large.is_leaving, "somebody has a view"
    del part
    parts = []
    while large.is_leaving:
        before = resident()
        large.give_back()
        parts.append(before - resident())
    assert len(parts) >= 32
    assert max(parts) <= 2 * GIVEN_BACK_BYTES
    assert sum(parts) >= 30 * 2**20


def test_where_much_is_to_go_back_it_goes_faster_than_frames_can_come():
    """A thousand connections that were cut off left 1.7 GiB behind, a MiB of which went in each turn."""
    large = LargeMemory()
    frames = [large.mapped(48 * 2**20) for _ in range(4)]
    for frame in frames:
        frame[::4096] = bytes(len(frame) // 4096)
    before = resident()
    frames.clear()
    del frame
    calls = 0
    while large.is_leaving:
        large.give_back()
        calls += 1
    much = 3 * 48 - 16  # MiB until only 64 are left
    assert calls == much // 4 + 64
    assert before - resident() > 180 * 2**20


def test_a_sum_that_is_not_exact_does_no_harm():
    """The last who has memory may be a thread beside the loop."""
    large = LargeMemory()
    large._leaving_bytes = 2**30  # as two threads at once may leave it
    large.mapped(2 * 2**20)
    large.give_back()
    assert not large.is_leaving
    large.mapped(4 * 2**20)
    large.give_back()
    assert large.is_leaving, "a part of it, again"


def test_a_loop_gives_it_back_while_nothing_else_happens():
    loop = EpollLoop(SystemClock())
    loop.large_memory.mapped(4 * GIVEN_BACK_BYTES)
    turns = []

    def look() -> None:
        turns.append(loop.turn_number)
        if loop.large_memory.is_leaving:
            loop.call_later(0.01, look)
        else:
            loop.stop()

    loop.call_soon(look)
    loop.run()
    loop.close()
    assert turns[-1] - turns[0] >= 4, "a part in each turn"
    assert len(turns) <= 3, "and none of them waits for a timer"
