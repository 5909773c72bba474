"""The cluster that the connection fuzzer plays against is one in which ordinary clients are served."""

from tests.fuzz.world import World


def test_a_world_has_a_group_coordinator_and_outlives_a_stranger():
    world = World()
    world.play(b"\x00" + b"\x00\x00\x04\xff\xff\xff\xff")  # to a tenant's port: a frame of a negative length
    world.look()
