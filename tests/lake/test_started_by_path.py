"""Programs of the lake that are started by their path, as spark-submit does: then their own folder comes first among imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import controlplane.lake
from controlplane.env import ROOT

FOLDER = Path(controlplane.lake.__file__).parent


def test_no_module_has_the_name_of_one_of_python_s_own():
    assert not {path.stem for path in FOLDER.glob("*.py")} & sys.stdlib_module_names


@pytest.mark.parametrize("program", ["load.py", "verify.py", "mirror_audit.py", "copy_table.py"])
def test_it_says_how_it_is_used_from_anywhere(program):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, str(FOLDER / program), "--help"]
    done = subprocess.run(words, cwd="/", env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
