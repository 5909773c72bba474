"""Three ZooKeepers: one leads, another does when that is killed, and what is left of a majority reads only."""

from __future__ import annotations

import pytest

from tests.chaos.keepers import NUMBERS, Keepers
from tests.support.waiting import wait_for


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(300)
def test_another_leads_when_the_leader_is_killed_and_one_alone_reads_only(tmp_path):
    keepers = Keepers(tmp_path)
    try:
        keepers.start()
        first = keepers.leader()
        keepers.kill_some(first)
        wait_for(lambda: keepers.leader() not in (None, first), 60, "another leader")
        second = keepers.leader()
        keepers.kill_some(second)
        (last,) = set(NUMBERS) - {first, second}
        wait_for(lambda: keepers.members[last].mode() == "read-only", 60, "the last one to read only")
        keepers.start()
        assert keepers.leader() is not None
        assert keepers.down == []
    finally:
        keepers.stop()
