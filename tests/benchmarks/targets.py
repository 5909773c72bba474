"""What we aim at, as figures: the prototype's (measured on another machine of the same kind) and the targets."""

from __future__ import annotations

from dataclasses import dataclass

PROTOTYPE = {  # (MB/s, CPU-s per GB)
    "produce 16 KiB": (651, 0.73),
    "produce 128 KiB": (939, 0.54),
    "produce 1 MiB": (997, 0.49),
    "consume 16 KiB": (1115, 0.57),
    "consume 128 KiB": (1129, 0.57),
    "consume 1 MiB": (1223, 0.52),
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be, and how many times better than Apache Kafka's. `more`: larger is better."""

    figure: str
    limit: float | None
    times: float | None
    more: bool = False

    def is_met(self, ours: float, apache: float | None) -> bool | None:
        """Both parts. None: what is left to judge needs Apache Kafka's figure, and there is none."""
        if self.limit is not None and (ours < self.limit if self.more else ours > self.limit):
            return False
        if self.times is None:
            return True
        if apache is None:
            return None
        return (ours / apache if self.more else apache / ours) >= self.times

    def __str__(self) -> str:
        sign = ">=" if self.more else "<="
        parts = [] if self.limit is None else [f"{sign} {self.limit:g}"]
        if self.times is not None:
            parts.append(f"{self.times:g}x Apache's")
        return ", ".join(parts)


TARGETS = {
    target.figure: target
    for target in (
        Target("produce 16 KiB, CPU-s/GB", 1.0, 6),
        Target("produce 128 KiB, CPU-s/GB", 0.65, 2.5),
        Target("produce 1 MiB, CPU-s/GB", 0.6, 5),
        Target("produce 16 KiB, MB/s", None, 3.5, more=True),
        Target("produce 128 KiB, MB/s", None, 1.8, more=True),
        Target("produce 1 MiB, MB/s", None, 3, more=True),
        *(Target(f"consume {size}, CPU-s/GB", 0.2, 2) for size in ("16 KiB", "128 KiB", "1 MiB")),
        *(Target(f"consume {size}, MB/s", None, 1.3, more=True) for size in ("16 KiB", "128 KiB", "1 MiB")),
        Target("small produce, requests/s of a core", 50_000, None, more=True),
        Target("small fetch, requests/s of a core", 50_000, None, more=True),
        Target("end to end at 1000/s, p50 ms", 0.2, None),
        Target("end to end at 1000/s, p99 ms", 0.5, 3),
        Target("end to end at 20000/s, p99 ms", 5, None),
        Target("three brokers, acks=all, 16 KiB, MB/s", None, 4, more=True),
        Target("three brokers, acks=all, 128 KiB, MB/s", None, 2, more=True),
        Target("three brokers, acks=all, 1000/s, p99 ms", 3, None),
        Target("controller killed: all led, s", 5, None),
        Target("resident idle, MiB", 60, None),
        Target("resident after load, MiB", 120, None),
        Target("accepts after, s", 1, None),
        Target("idle connection, KiB", 4, None),
    )
}
