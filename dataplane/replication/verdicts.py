"""Verdicts that end a producer: only the broker that still leads may give one.

An idempotent producer ends when it hears OUT_OF_ORDER_SEQUENCE_NUMBER: its batch does not come behind the last one that
the leader knows of. A leader that was deposed, and has not heard of it, misses what the new one has taken since. So a
verdict waits until every other member of the ISR has asked for more in our epoch: a broker that follows us is not the leader
elected after us, and nobody else can be.

What a follower asks proves that only if it was sent after the verdict was asked for. Up to two of its requests may be on
their way then; one more follows an answer to one of them. A request that waits at our side is answered at once, so
this takes a few round trips. Where nobody else is in sync it takes nothing. A partition waits for one proof at a time,
and what comes meanwhile for the next: so it costs the same however many batches come out of order.

Who cannot tell in time, or ceases to lead, answers NOT_LEADER_OR_FOLLOWER: the client asks again, and perhaps
somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.following.fetch_requests import MAX_UNDER_WAY
from dataplane.replication.replica.waiters import Waiter
from dataplane.replication.waiting import tell

if TYPE_CHECKING:
    from dataplane.doors import Loop
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.waiting import Waiting

LONGEST_S = 1.0
_REQUESTS_THAT_PROVE = MAX_UNDER_WAY + 1

Done = Callable[[ErrorCode], None]


class _Proof(Waiter):
    """That we lead a partition: waits for so many more requests of each of these followers."""

    __slots__ = ("_verdicts", "dones", "later", "missing", "partition")

    def __init__(self, verdicts: Verdicts, partition: Partition, dones: list[Done]) -> None:
        super().__init__()
        self._verdicts = verdicts
        self.partition = partition
        self.dones = dones
        self.later: list[Done] = []  # for whom this one was begun too early
        self.missing = dict.fromkeys(partition.state.others_in_sync(), _REQUESTS_THAT_PROVE)

    def is_untouched(self) -> bool:
        """Whether it holds for a request that comes now as well."""
        return all(left == _REQUESTS_THAT_PROVE for left in self.missing.values())

    def is_given(self) -> bool:
        """Whether everybody has asked who might be elected."""
        return all(self.missing.get(broker_id, 0) <= 0 for broker_id in self.partition.state.others_in_sync())

    def expired(self) -> None:
        """Nobody knows."""
        self._verdicts.end(self, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Verdicts:
    """Those of a broker that wait. Where there are none, requests of followers cost nothing more."""

    def __init__(self, loop: Loop, waiting: Waiting) -> None:
        self._loop = loop
        self._waiting = waiting
        self._is_hurrying = False
        self.open: dict[Partition, _Proof] = {}

    def wait(self, partition: Partition, done: Done) -> None:
        """Call `done` once: with NONE if we lead the partition for sure, else NOT_LEADER_OR_FOLLOWER."""
        proof = self.open.get(partition)
        if proof is None:
            self._begin(partition, [done])
        elif proof.is_untouched():
            proof.dones.append(done)
        else:
            proof.later.append(done)

    def asked(self, follower: int, copies: Callable[[Partition], bool]) -> None:
        """A follower has sent a request, by which it copies some partitions in our epoch."""
        for proof in list(self.open.values()):
            left = proof.missing.get(follower)
            if left is not None and copies(proof.partition):
                proof.missing[follower] = left - 1
                self._look_at(proof)
        if self.open:
            self._hurry()

    def isr_changed(self, partition: Partition) -> None:
        """The controller has confirmed it: a replica that has left it cannot be elected."""
        proof = self.open.get(partition)
        if proof is not None:
            self._look_at(proof)

    def dismiss(self, partition: Partition) -> None:
        """We do not lead it any more, or in another epoch."""
        proof = self.open.get(partition)
        if proof is not None:
            self.end(proof, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def end(self, proof: _Proof, code: ErrorCode) -> None:
        """It is given, or is not to be had."""
        if self.open.get(proof.partition) is not proof:
            return
        del self.open[proof.partition]
        proof.clear_deadline()
        for done in proof.dones:
            tell(done, code)
        if code is ErrorCode.NONE and proof.later:
            self._begin(proof.partition, proof.later)
        else:
            for done in proof.later:
                tell(done, code)

    def _begin(self, partition: Partition, dones: list[Done]) -> None:
        proof = self.open[partition] = _Proof(self, partition, dones)
        if not partition.state.is_leader:
            self.end(proof, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif not proof.missing:
            self.end(proof, ErrorCode.NONE)
        else:
            self._waiting.set_deadline(proof, LONGEST_S)
            self._hurry()

    def _look_at(self, proof: _Proof) -> None:
        if proof.is_given():
            self.end(proof, ErrorCode.NONE)

    def _hurry(self) -> None:
        """Have the requests answered that wait for something to happen, behind all that comes in this turn."""
        if not self._is_hurrying:
            self._is_hurrying = True
            self._loop.at_turn_end(self._answer_followers)

    def _answer_followers(self) -> None:
        self._is_hurrying = False
        for partition in list(self.open):
            self._waiting.arrived(partition.queues.replica_waiters, 1)
