"""Values the tests of this folder share."""

from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.contracts.report import Flow, FlowReport, InstanceReport

INSTANCE = "ins-k3v9x2qa"


def spec(
    instance=INSTANCE,
    *,
    produce=300,
    consume=300,
    storage=1000,
    strategy="ckafka",
    state=InstanceState.RUNNING,
    generation=1,
):
    limits = Limits(produce, consume, storage, partitions=60)
    return InstanceSpec(instance, generation, state, limits, whitelist=("0.0.0.0/0",), routes=(), strategy=strategy)


def flow(used=0, *, leaders=2, allocation=None, throttled_ms=0, queued=0, blocked=None):
    return Flow(used, throttled_ms, queued, leaders, allocation, blocked)


def report(broker, produce=None, consume=None, *, sequence=1, boot="a", storage=0, connections=0, period_ms=1000):
    entry = InstanceReport(produce or flow(), consume or flow(), storage, connections)
    return FlowReport(broker, boot, sequence, period_ms, {INSTANCE: entry})
