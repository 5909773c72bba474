"""The sentence that answers "why was I throttled?"."""

from quota.contracts.instance import MIB
from quota.core.allocate import allocate
from quota.core.explain import explain, explain_storage
from quota.core.model import BrokerFlow


def test_it_names_the_broker_its_share_of_traffic_and_leaders_and_the_instance_total():
    flows = [BrokerFlow(1, 4, 3 * MIB), BrokerFlow(2, 2, MIB)]
    assert explain("produce", allocate(5 * MIB, flows), 1) == (
        "broker 1 carries 75 % of the produce traffic (4 of 6 leaders) and may carry 3.75 MiB/s; the instance uses "
        "80 % of its 5.00 MiB/s; the brokers are used unevenly, so shares follow use and less used ones may grow"
    )


def test_blocked_unlimited_and_a_broker_without_leaders_have_sentences_of_their_own():
    flows = [BrokerFlow(1, 1, 0)]
    assert explain("consume", allocate(0, flows), 1) == "consume is blocked: the instance's limit is 0"
    assert explain("consume", allocate(None, flows), 1) == "consume is unlimited; nothing is throttled"
    assert explain("consume", allocate(9, flows), 2).startswith("broker 2 leads no partition")


def test_every_branch_of_both_strategies_has_a_reason():
    for use in (0, 50, 100):
        for strategy in ("ckafka", "bounded"):
            flows = [BrokerFlow(1, 1, use), BrokerFlow(2, 1, 50), BrokerFlow(3, 1, 50, silent=True)]
            allocation = allocate(90, flows, strategy)
            for broker in (1, 2, 3):
                assert explain("produce", allocation, broker).count(";") == 2


def test_full_storage_names_limit_and_use():
    assert explain_storage(1001, 1000) == (
        "storage is full: 1001 of 1000 bytes are used; producing is blocked, consuming goes on"
    )
