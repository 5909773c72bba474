"""A service's load ends before the next one may delete what it has written and not committed."""

from __future__ import annotations

import subprocess
import sys

from controlplane.env import ROOT
from controlplane.lake.load import ENDS_AFTER_S
from controlplane.lake.request import KEPT_FOR_HOURS, LONGEST_RUN_S
from controlplane.loads import running

PROGRAM = """
import time
from controlplane.lake import load
load._end_after(0.1)
time.sleep(60)
"""


def test_files_are_kept_for_longer_than_a_run_can_last():
    assert running.LONGEST_S == LONGEST_RUN_S < ENDS_AFTER_S < KEPT_FOR_HOURS * 3600


def test_the_program_ends_by_itself_when_nobody_stops_it():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, timeout=30, check=False)
    assert ended.returncode == 1
