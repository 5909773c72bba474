"""InitProducerId: a new id for whoever has none to fence, and a refusal where an answer would promise more."""

from __future__ import annotations

import pytest

from dataplane.doors import ZooKeeperError
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import InitProducerIdRequest
from tests.dataplane.handlers.doors import asked, internal, tenant, versions

ALL = versions(ApiKey.INIT_PRODUCER_ID)
SAY_WHO = range(3, ALL.stop)
"""From this version on a producer says which id it had (KIP-360)."""


class Ids:
    """Those of a broker. `given` counts; one that is `away` does not reach ZooKeeper."""

    def __init__(self, *, away=False):
        self.given, self._away = 0, away

    async def next(self):
        if self._away:
            raise ZooKeeperError("away")
        self.given += 1
        return 999 + self.given


def initialise(ids, version, *, door=tenant, **said):
    request = InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60_000, **said})
    answer = asked(door(), request, version, producer_ids=ids)
    return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", ALL)
def test_each_producer_of_either_door_gets_an_id_of_its_own_at_epoch_0(version):
    ids = Ids()
    assert initialise(ids, version) == (ErrorCode.NONE, 1000, 0)
    assert initialise(ids, version) == (ErrorCode.NONE, 1001, 0)
    assert initialise(ids, version, door=internal) == (ErrorCode.NONE, 1002, 0)


@pytest.mark.parametrize("version", SAY_WHO)
def test_one_that_had_an_id_gets_another(version):
    assert initialise(Ids(), version, producer_id=5, producer_epoch=3) == (ErrorCode.NONE, 1000, 0)


@pytest.mark.parametrize("version", SAY_WHO)
@pytest.mark.parametrize("said", [{"producer_id": 5, "producer_epoch": -1}, {"producer_id": -1, "producer_epoch": 3}])
def test_an_id_without_an_epoch_is_none_and_the_other_way_round(said, version):
    ids = Ids()
    assert initialise(ids, version, **said) == (ErrorCode.INVALID_REQUEST, -1, -1)
    assert ids.given == 0


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("door", [tenant, internal])
def test_an_id_without_a_name_is_none(version, door):
    """What is told of others is in `tests/dataplane/transactions`."""
    ids = Ids()
    assert initialise(ids, version, door=door, transactional_id="") == (ErrorCode.INVALID_REQUEST, -1, -1)
    assert ids.given == 0


@pytest.mark.parametrize("version", ALL)
def test_where_zookeeper_does_not_answer_the_producer_is_to_ask_again(version):
    assert initialise(Ids(away=True), version) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1)
