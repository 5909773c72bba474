"""The size that is proposed where a limit was used up."""

from __future__ import annotations

from controlplane.instances.validation import MOST_BANDWIDTH_MIB_PER_S
from controlplane.remedies.merging import whys
from controlplane.remedies.proposals import bandwidth_proposed, storage_proposed
from quota.contracts.instance import MIB
from quota.contracts.throttled import BrokerInputs, Moment
from tests.controlplane.quotas.conftest import NINE, interval


def why(limit_mib, *, waited_s=5, flow_mib=None, owed_mib=0.0):
    """Of twenty seconds, on one broker."""
    flow = round((limit_mib if flow_mib is None else flow_mib) * MIB)
    row = BrokerInputs(1, 2, flow, flow, flow, flow, "initial", 900, round(owed_mib * MIB))
    made = interval(limit=limit_mib * MIB, throttled_ms=waited_s * 1000)
    object.__setattr__(made, "moment", Moment(NINE, (row,)))
    (found,) = whys([made])
    return found


def test_a_quarter_more_where_little_was_waited_and_half_more_where_much_was():
    assert bandwidth_proposed(why(8), 8) == 10
    assert bandwidth_proposed(why(8, waited_s=10), 8) == 12


def test_what_is_owed_counts_as_asked_for_but_no_more_than_twice_the_limit():
    assert bandwidth_proposed(why(10, owed_mib=5), 10) == 17  # 1.1 * 15, in whole MiB/s
    assert bandwidth_proposed(why(10, owed_mib=300), 10) == 20


def test_sizes_are_round():
    assert bandwidth_proposed(why(21), 21) == 30  # 26.25
    assert bandwidth_proposed(why(90), 90) == 120  # 112.5
    assert bandwidth_proposed(why(2_000), 2_000) == 2_500


def test_who_has_bought_as_much_meanwhile_is_offered_nothing():
    assert bandwidth_proposed(why(8), 10) is None
    assert bandwidth_proposed(why(8), 9) == 10
    most = MOST_BANDWIDTH_MIB_PER_S
    assert bandwidth_proposed(why(most), most) is None
    assert bandwidth_proposed(why(most - 1), most - 1) == most


def test_storage_is_a_quarter_more():
    assert [storage_proposed(size) for size in (10, 2.5, 100, 5_000)] == [13, 4, 150, 6_300]
