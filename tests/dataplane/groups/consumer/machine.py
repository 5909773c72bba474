"""A group of the consumer protocol without a coordinator: events go in by hand, and the log says yes at once or when told to."""

from dataclasses import replace

from dataplane.coordination.effects import CancelTimer, Reply, SetTimer, Store
from dataplane.groups.consumer.events import Around, Heartbeat
from dataplane.groups.consumer.ledger import apply
from dataplane.groups.consumer.model import Group
from dataplane.groups.consumer.records import read, write
from dataplane.groups.consumer.state import handle
from dataplane.groups.settings import ConsumerRules
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.support import FixedTopics

GROUP = "aaaaaaaa.g"


class Machine:
    """Keeps the group, the answers by token, the running timers, and what the log has."""

    def __init__(self, rules=None, **sizes):
        self.topics = FixedTopics(**(sizes or {"t": 4}))
        self.rules = rules or ConsumerRules()
        self.group = Group(GROUP)
        self.replies = {}
        self.timers = {}
        self.stores = []  # waiting for the log
        self.log = []  # keys and values
        self.log_is_slow = False
        self._tokens = iter(range(1_000_000))

    @property
    def around(self):
        return Around(self.rules, self.topics.find, self.topics.version)

    def do(self, event):
        self.group, effects = handle(self.group, event, self.around, 1_000)
        for effect in effects:
            if isinstance(effect, Reply):
                assert effect.token not in self.replies, "a request was answered twice"
                self.replies[effect.token] = effect.result
            elif isinstance(effect, SetTimer):
                if not (effect.unless_running and effect.name in self.timers):
                    self.timers[effect.name] = effect
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.name, None)
            else:
                assert isinstance(effect, Store)
                assert not self.stores, "one batch is on its way at a time"
                self.stores.append(effect)
        if not self.log_is_slow:
            self.commit()

    def commit(self, error=ErrorCode.NONE, *, is_in_the_log=None):
        """What is on its way arrives; or does not, and may be in the log all the same."""
        while self.stores:
            store = self.stores.pop(0)
            if is_in_the_log or (is_in_the_log is None and error == ErrorCode.NONE):
                self.log += [write(GROUP, record) for record in store.value]
            self.do(replace(store.then, error=error))
            if self.log_is_slow:
                return

    def ring(self, name):
        self.do(self.timers.pop(name).event)

    def replayed(self):
        """What a successor would load."""
        return apply(Group(GROUP), [read(*pair)[1] for pair in self.log])

    def ask(self, member_id, epoch, **more):
        token = next(self._tokens)
        self.do(Heartbeat(member_id, epoch, token=token, **more))
        return token

    def beat(self, member_id, epoch, **more):
        return self.replies[self.ask(member_id, epoch, **more)]

    def join(self, member_id, *topics, **more):
        more = {"topics": topics or ("t",), "rebalance_timeout_ms": 60_000, "owned": {}, **more}
        return self.beat(member_id, 0, **more)

    def has(self, member_id, topic="t"):
        """The partitions of a topic that a member was assigned."""
        return self.group.members[member_id].assigned.get(self.topics.rows[topic].topic_id, ())


def durable(group):
    """What of a group the log has to know."""
    return replace(group, seen_topics=-1, storing=False, waiting=(), doubtful=(), outgrown=0)
