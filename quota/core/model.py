"""The vocabulary of flow allocation, as frozen values.

===========================  ===========================================================================================
limit (L)                    what the instance bought in one direction, bytes/s; None = unlimited, 0 = blocked
leaders (n_b)                partitions of the instance that broker b leads: flow arises only at leaders
flow (u_b)                   bytes/s the instance used on broker b over the last report period
initial share (F_b)          L * n_b / sum(n)
proportional share (P_b)     L * u_b / sum(u)
allocation (a_b)             bytes/s in force on broker b
===========================  ===========================================================================================

Everything is whole bytes per second. Produce and consume are two independent runs of the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Branch(StrEnum):
    """Which line of the rule gave an allocation."""

    INITIAL = "initial"  # every broker is below 80 % of its initial share
    PROPORTIONAL = "proportional"  # brokers are used alike: shares follow use
    HEADROOM = "headroom"  # brokers are used unevenly: shares follow use, the smaller ones may grow
    BOUNDED = "bounded"  # the second strategy: the sum stays within 1.05 of the limit
    UNLIMITED = "unlimited"  # nothing was bought as a limit
    LEARNING = "learning"  # a new master renews what brokers hold before it changes anything
    RESERVED = "reserved"  # a leader that does not report is set aside its initial share


class Strategy(StrEnum):
    """How an instance's limit is divided; chosen per instance."""

    CKAFKA = "ckafka"  # the documented rule
    BOUNDED = "bounded"


@dataclass(frozen=True, slots=True)
class BrokerFlow:
    """One instance and direction as one broker last reported it."""

    broker: int
    leaders: int
    flow_bytes_per_s: int
    throttled: bool = False  # in the last period: its demand is higher than its flow shows
    silent: bool = False  # a leader that no longer reports


@dataclass(frozen=True, slots=True)
class Share:
    """What one broker gets, with the figures it was decided from."""

    broker: int
    leaders: int
    flow_bytes_per_s: int
    initial_bytes_per_s: int | None  # None = unlimited
    allocation_bytes_per_s: int | None  # None = unlimited
    branch: Branch


@dataclass(frozen=True, slots=True)
class Allocation:
    """One instance and direction over all its leaders, in broker order."""

    limit_bytes_per_s: int | None
    branch: Branch
    shares: tuple[Share, ...]

    def share(self, broker: int) -> Share | None:
        """The share of one broker, or None where it leads nothing."""
        return next((share for share in self.shares if share.broker == broker), None)
