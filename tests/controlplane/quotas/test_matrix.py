"""What every instance has on every broker, as whole numbers: of the master's documents, and kept beside them."""

from __future__ import annotations

import pytest

from controlplane.clusters.services import cluster_ensure
from controlplane.quotas.figures import figures_keep, matrices_last
from controlplane.quotas.matrix import MEASURES, UNKNOWN, Matrix, matrices_of
from tests.controlplane.console.test_instance_pages import MIB, flowing, share


def document(name, *brokers, produce=(), consume=(), times=()):
    """Flow of MiB/s and allocations by broker."""

    def side(flows):
        return {
            "brokers": [
                {"broker": broker, "leaders": broker, "flow": flow, "allocation": 10 * MIB, "initial_share": 1}
                for broker, flow in zip(brokers, flows, strict=True)
            ]
        }

    found = {"instance": name, "produce": side(produce), "consume": side(consume)}
    if times:
        found["broker_time"] = {"brokers": [{"broker": broker, "flow": ms} for broker, ms in times]}
    return found


def test_rows_are_instances_and_columns_brokers():
    found = matrices_of(
        [
            document("ins-b", 1, 3, produce=(MIB, 2 * MIB), consume=(0, 5 * MIB)),
            document("ins-a", 2, produce=(7,), consume=(0,), times=[(2, 1.5)]),
        ]
    )
    assert set(found) == set(MEASURES)
    produce = found["produce"]
    assert (produce.instances, produce.brokers) == (("ins-a", "ins-b"), (1, 2, 3))
    assert produce.rows() == [[UNKNOWN, 7, UNKNOWN], [MIB, UNKNOWN, 2 * MIB]]
    assert found["leaders"].rows() == [[UNKNOWN, 2, UNKNOWN], [1, UNKNOWN, 3]]
    assert found["allocation"].rows()[1] == [100, UNKNOWN, 500], "of both directions the larger, in thousandths"
    assert found["loop"].rows() == [[UNKNOWN, 1500, UNKNOWN], [UNKNOWN] * 3]


def test_a_column_and_sums_leave_out_what_is_not_known():
    produce = matrices_of(
        [
            document("ins-b", 1, 3, produce=(4, 2), consume=(0, 0)),
            document("ins-a", 3, produce=(7,), consume=(0,)),
        ]
    )["produce"]
    assert produce.column(3) == {"ins-a": 7, "ins-b": 2}
    assert produce.column(1) == {"ins-b": 4}
    assert produce.column(9) == {}
    assert produce.by_broker() == {1: 4, 3: 9}


@pytest.mark.parametrize(
    "broken", [{}, {"instance": "x", "produce": {"brokers": [{}]}}, {"instance": "x", "produce": 7}]
)
def test_a_document_that_is_not_legible_costs_the_others_nothing(broken):
    found = matrices_of([broken, document("ins-a", 1, produce=(7,), consume=(0,))])
    assert found["produce"].instances == ("ins-a",)


def test_of_nobody_there_is_a_matrix_of_nothing():
    assert matrices_of([])["produce"] == Matrix((), (), b"")
    assert matrices_of([])["produce"].rows() == []
    assert matrices_of([])["produce"].by_broker() == {}


def test_it_is_kept_with_the_figures_and_stays_while_no_master_answers(instance, flow_master, clock):
    cluster = cluster_ensure()
    assert matrices_last(cluster.address, ["produce"]) is None
    told = flowing(produce=3 * MIB)
    told["produce"]["brokers"].append(share(2, MIB, 2 * MIB))
    flow_master.answers[instance.id] = told
    figures_keep(clock=clock)
    found, at = matrices_last(cluster.address, ["produce", "leaders"])
    assert at == clock.now()
    assert found["produce"].column(2) == {instance.id: MIB}
    flow_master.answers.clear()
    clock.advance(60)
    figures_keep(clock=clock)
    assert matrices_last(cluster.address, ["produce"])[1] == at
