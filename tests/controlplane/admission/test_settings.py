"""Settings of room and caps: what is named counts, the rest is default, and what makes no sense is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.admission import installed
from controlplane.admission.rules import DEFAULT_CAPS, DEFAULT_ROOM, Room
from controlplane.env import EnvironmentProblem


def test_what_is_named_counts_and_the_rest_is_default(settings):
    room = "storage_gib=50*1.5, bandwidth_mib_per_s=7"
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, broker_room=room, caps="instances=3")
    found = installed.rooms()
    assert found["storage_gib"] == Room(50, 1.5)
    assert found["bandwidth_mib_per_s"] == Room(7, DEFAULT_ROOM["bandwidth_mib_per_s"].overcommit)
    assert found["partitions"] == DEFAULT_ROOM["partitions"]
    assert installed.caps() == {**DEFAULT_CAPS, "instances": 3}


@pytest.mark.parametrize(
    ("member", "value", "read"),
    [("broker_room", "luck=1", installed.rooms), ("broker_room", "storage_gib=1*nan", installed.rooms),
     ("caps", "instances=-1", installed.caps), ("price_confirmed_above", "much", installed.price_confirmed_above)],
)  # fmt: skip
def test_what_makes_no_sense_is_named(settings, member, value, read):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, **{member: value})
    with pytest.raises(EnvironmentProblem, match="SLUICE_"):
        read()
