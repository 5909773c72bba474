"""For all tests: a machine that is busy with something else fails none of them by being slow for a moment, and what one of
them leaves open fails no other."""

import gc
import os
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings as installation
from hypothesis import settings

# gRPC, which tests of the provider for Terraform load, starts its threads again in every child that is forked; there they find
# their descriptors closed and abort it, before it becomes the program that it was forked for: one of ten, measured.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

settings.register_profile("sluice", deadline=None)  # each test as a whole is bounded in time by pytest-timeout
settings.load_profile("sluice")

KEYS = Path(__file__).parent / "support" / "encryption.keys"
os.environ.setdefault("SLUICE_ENCRYPTION_KEYS_FILE", str(KEYS))  # of processes that tests start
installation.ENVIRONMENT = replace(
    installation.ENVIRONMENT, encryption_keys_file=KEYS
)  # settings were read before this file


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture(autouse=True)
def _what_a_test_leaves_open_is_told_of_by_itself():
    """A socket that is left to the garbage collector warns when that runs, and a warning fails the test that runs then."""
    before = _descriptors()
    yield
    if _descriptors() > before:
        gc.collect()
