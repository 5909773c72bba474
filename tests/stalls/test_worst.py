"""The cases that were thought of by hand are requests that a broker reads from a tenant: else they would show nothing."""

from itertools import pairwise

import pytest

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import limited_decoder
from dataplane.protocol.headers import parse_request_header
from dataplane.requests.dispatch import MAX_OTHER_FRAME_BYTES
from quota.contracts.instance import MIB
from quota.contracts.namespace import InstanceNames
from tests.stalls.__main__ import QUICK
from tests.stalls.attacks import generated
from tests.stalls.largest import Known
from tests.stalls.world import INTERNAL, TENANT, Sizes, World
from tests.stalls.worst import worst

KNOWN = Known([f"topic-{n}" for n in range(300)], [f"group-{n}" for n in range(300)])
WORLD = World(None, Sizes(0, 0, 0), {}, {TENANT: KNOWN, "indebted": KNOWN}, ("127.0.0.1", 0))
ASKED = [attack for attack in worst() if attack.door != INTERNAL]
SMALL = [attack for attack in ASKED if attack.api != "PRODUCE" or "nobody knows" in attack.name]
NAMES = InstanceNames("k3v9x2qa")


def read(frame, key, version):
    """As a broker reads what follows the size."""
    view = memoryview(frame)[4:]
    return limited_decoder(APIS[key].request, version)(view, parse_request_header(view).position, NAMES)[0]


@pytest.mark.parametrize("attack", SMALL, ids=lambda attack: attack.name)
def test_each_is_read_from_a_tenant(attack):
    key = ApiKey[attack.api]
    frame = attack.frames(WORLD)[0]
    assert len(frame) - 4 <= MAX_OTHER_FRAME_BYTES
    assert parse_request_header(memoryview(frame)[4:])[:2] == (key, attack.version)
    read(frame, key, attack.version)


def test_no_two_rows_have_the_same_name():
    names = sorted(attack.name for attack in (*generated(), *worst()))
    assert [name for name, following in pairwise(names) if name == following] == []


def test_every_row_of_the_quick_list_exists():
    assert {*QUICK} <= {attack.name for attack in (*generated(), *worst())}


def test_the_names_of_one_broker_are_all_different_and_begin_alike():
    attack = next(attack for attack in SMALL if "4,000 names for one broker" in attack.name)
    names = [resource.resource_name for resource in read(attack.frames(WORLD)[0], 32, 4).resources]
    assert len({*names}) == 4_000
    assert {int(name[:20]) for name in names} == {1}


def test_a_frame_is_announced_and_its_end_never_comes():
    attack = next(attack for attack in ASKED if "announced" in attack.name)
    (frame,) = attack.frames(WORLD)
    assert int.from_bytes(frame[:4]) == 100 * MIB
    assert 100 * MIB - 2_000 < len(frame) < 100 * MIB


def test_invented_producers_are_others_each_time():
    attack = next(attack for attack in SMALL if "nobody knows" in attack.name)
    frames = attack.frames(WORLD)
    assert len({*frames}) == len(frames) == 3_000
