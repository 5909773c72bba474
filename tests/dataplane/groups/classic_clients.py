"""A consumer of the classic protocol as a client library has it, eager or cooperative. The leader assigns in turn."""

from dataplane.groups.classic.events import Heartbeat, HeartbeatResult, Join, JoinResult, Leave, Sync
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)

GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
VERSION = 1


def subscription(topics, owned=()):
    """Metadata of a member. `owned`: (topic, partition)s."""
    rows = tuple(
        ConsumerProtocolSubscriptionTopicPartition(name, tuple(sorted(p for t, p in owned if t == name)))
        for name in sorted({name for name, _ in owned})
    )
    return VERSION.to_bytes(2) + encode(ConsumerProtocolSubscription(topics, None, rows), VERSION)


def assignment(places, user_data=None):
    """Bytes of an assignment."""
    rows = tuple(
        ConsumerProtocolAssignmentTopicPartition(name, tuple(sorted(p for t, p in places if t == name)))
        for name in sorted({name for name, _ in places})
    )
    return VERSION.to_bytes(2) + encode(ConsumerProtocolAssignment(rows, user_data), VERSION)


def places_in(data):
    """(topic, partition)s of an assignment, by the tenant's names."""
    if not data:
        return set()
    said = decode(ConsumerProtocolAssignment, int.from_bytes(data[:2]), data, 2)
    return {(row.topic, partition) for row in said.assigned_partitions for partition in row.partitions}


class ClassicClient:
    """`owns` is what it reads at the moment: (topic, partition)s. `sizes`: partitions of each topic, by the tenant's names."""

    def __init__(self, topics, sizes, *, cooperative=False, instance_id=None):
        self.topics, self.sizes, self.cooperative, self.instance_id = tuple(topics), sizes, cooperative, instance_id
        self.member_id, self.generation, self.owns = "", -1, set()
        self.next = "join"
        self.given = {}

    @property
    def name(self):
        return "cooperative-sticky" if self.cooperative else "range"

    def request(self):
        """What it asks next."""
        if self.next == "join":
            if not self.cooperative:
                self.owns = set()
            metadata = subscription(self.topics, self.owns)
            return Join(
                self.member_id, "consumer", ((self.name, metadata),), 10_000, 60_000, self.instance_id,
                needs_known_id=self.instance_id is None,
            )  # fmt: skip
        if self.next == "sync":
            return Sync(self.generation, self.member_id, self.instance_id, "consumer", self.name, self.given)
        return Heartbeat(self.generation, self.member_id, self.instance_id)

    def leave(self):
        self.owns = set()
        return Leave(((self.member_id, self.instance_id),))

    def hears(self, result):
        error = result.error
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = result.member_id
        elif error in GONE:
            self.member_id, self.owns, self.next = "", set(), "join"
        elif error == ErrorCode.ILLEGAL_GENERATION:
            self.owns, self.next = set(), "join"
        elif error != ErrorCode.NONE:
            if not isinstance(result, HeartbeatResult) or error == ErrorCode.REBALANCE_IN_PROGRESS:
                self.next = "join"
        elif isinstance(result, JoinResult):
            self._joined(result)
        elif not isinstance(result, HeartbeatResult):
            self._assigned(places_in(result.assignment))

    def _joined(self, result):
        self.member_id, self.generation, self.next = result.member_id, result.generation, "sync"
        assert result.protocol == self.name
        self.given = self._lead(result.members) if result.leader == result.member_id else {}

    def _assigned(self, wanted):
        lost = self.owns - wanted
        self.owns, self.next = wanted, "join" if lost else "heartbeat"

    def _lead(self, members):
        """Of each member; cooperatively nothing that another has not given up."""
        said = {m: decode(ConsumerProtocolSubscription, VERSION, data, 2) for m, _, data in members}
        owner = {(r.topic, p): m for m, s in said.items() for r in s.owned_partitions for p in r.partitions}
        given = {m: set() for m in said}
        number = 0
        for topic, size in sorted(self.sizes.items()):
            takers = [m for m, s in said.items() if topic in s.topics]
            for partition in range(size if takers else 0):
                taker = takers[number % len(takers)]
                number += 1
                if owner.get((topic, partition), taker) == taker:
                    given[taker].add((topic, partition))
        return {m: assignment(some) for m, some in given.items()}
