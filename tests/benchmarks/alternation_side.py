"""One side of `alternation`: brokers of the checkout that it is run in. Reads what to measure, line by line, and answers so.

It uses of a checkout what has long been there: `Rig`, `small.per_core`, `throughput`, `latency.end_to_end`.
"""

from __future__ import annotations

import json
import sys
from itertools import count

from tests.benchmarks import latency, small, throughput
from tests.benchmarks.rig import Rig
from tests.benchmarks.server import Server

SINGLE = ("small", "16 KiB", "128 KiB", "1 MiB", "1000/s", "20000/s")
REPLICATED = ("replicated 16 KiB", "replicated 128 KiB", "replicated 1000/s")
_BATCHES = {"16 KiB": 16 * 2**10, "128 KiB": 128 * 2**10, "1 MiB": 2**20}
_SMALL_S, _LATENCY_S = 2.0, 5.0
_BYTES, _REPLICATED_BYTES = 500_000_000, 200_000_000
_WARM_BYTES = 1_000_000_000


def main(brokers: int) -> None:
    """Until the other end is closed."""
    numbers = count()
    with Rig(brokers=brokers) as rig:
        rig.keep_pages_warm(_WARM_BYTES)
        for line in sys.stdin:
            what = json.loads(line).get("measure")
            topic = f"alternation-{next(numbers)}"
            found: dict[str, float] = {}
            if what is not None:
                rig.topic(topic, 3, min(3, brokers))
                found = _measured(rig, what, topic, "all" if brokers > 1 else "1")
                rig.delete_topic(topic)
            print(json.dumps(found), flush=True)


def _measured(rig: Server, what: str, topic: str, acks: str) -> dict[str, float]:
    kind = what.removeprefix("replicated ")
    if kind == "small":
        requests = {"produce": small.produce_request(topic), "fetch": small.fetch_request(topic, 0)}
        return {
            f"small {name}, requests/s of a core": small.per_core(rig, request, _SMALL_S)[0]
            for name, request in requests.items()
        }
    if kind in _BATCHES:
        size = _BYTES if acks == "1" else _REPLICATED_BYTES
        _, cost = throughput.produce(rig, topic, _BATCHES[kind], size, acks=acks)
        found = {f"produce {what}, CPU-s/GB": cost}
        if acks == "1":
            found[f"consume {what}, CPU-s/GB"] = throughput.consume(rig, topic, size)[1]
        return found
    median, worst = latency.end_to_end(rig.bootstrap, topic, int(kind.removesuffix("/s")), _LATENCY_S, acks=acks)
    return {f"end to end {what}, p50 ms": median, f"end to end {what}, p99 ms": worst}


if __name__ == "__main__":
    main(int(sys.argv[1]))
