"""A copier whose client does not come back ends, and says in which call; one whose client is slow goes on."""

import subprocess
import sys

PROGRAM = """
import time
from tests.chaos.copier import comes_back
with comes_back("commit_transaction", {within}):
    time.sleep({takes})
print("went on", flush=True)
"""


def run(within, takes):
    program = PROGRAM.format(within=within, takes=takes)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    return ended.returncode, ended.stdout.strip()


def test_a_call_that_does_not_come_back_ends_the_process():
    assert run(within=0.05, takes=20) == (1, "stuck in commit_transaction")


def test_a_call_that_comes_back_in_time_is_not_remembered():
    assert run(within=20, takes=0) == (0, "went on")
