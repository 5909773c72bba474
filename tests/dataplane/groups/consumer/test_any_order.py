"""Members come, go, fall silent and lose answers, topics change, the log fails, coordinators load: in any order.

At every moment no partition has two owners, neither by the coordinator's account nor by the members' own; epochs do not go back;
and what was stored is loaded as the group that is served. When the trouble is over and all heartbeat, they reach their targets.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataplane.groups.consumer.events import SessionExpired
from dataplane.groups.consumer.model import Group, GroupState, places
from dataplane.groups.consumer.state import CLEAR_UP_TIMER, timers_of
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.consumer.clients import Client
from tests.dataplane.groups.consumer.machine import Machine, durable

NAMES = ("ana", "bob", "carl", "dora")
TOPICS = ("t", "u", "v")
SUBSCRIPTIONS = st.sampled_from([("t",), ("t", "u"), ("u", "v"), ("t", "u", "v")])


class AnyOrder(RuleBasedStateMachine):
    """See the file's text."""

    @initialize(sizes=st.lists(st.integers(1, 5), min_size=3, max_size=3))
    def begin(self, sizes):
        self.machine = Machine(**dict(zip(TOPICS, sizes, strict=True)))
        self.clients = {}
        self.asked = []  # (client, token) of heartbeats that wait for the log
        self.highest = 0
        self.epochs = {}

    # --- members ------------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), topics=SUBSCRIPTIONS)
    def starts(self, name, topics):
        if name not in self.clients:
            self.clients[name] = Client(name, topics)

    @rule(name=st.sampled_from(NAMES), is_lost=st.booleans())
    def heartbeats(self, name, is_lost):
        client = self.clients.get(name)
        if client is None or any(waiting is client for waiting, _, _ in self.asked):
            return
        token = self.machine.ask(name, **client.request())
        self.asked.append((client, token, is_lost))
        self._deliver()

    @rule(name=st.sampled_from(NAMES))
    def gives_up_what_it_should(self, name):
        if name in self.clients:
            self.clients[name].revoke()

    @rule(name=st.sampled_from(NAMES))
    def leaves(self, name):
        client = self.clients.pop(name, None)
        if client is not None and client.epoch > 0:
            client.owns = {}
            self.machine.ask(name, -1)
            self._deliver()

    @rule(name=st.sampled_from(NAMES))
    def falls_silent(self, name):
        if name in self.machine.group.members:
            self.machine.do(SessionExpired(name))
            self._deliver()

    # --- the cluster --------------------------------------------------------------------------------------------------

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 3))
    def grows(self, topic, more):
        known = self.machine.topics.find(topic)
        self.machine.topics.put(topic, more if known is None else known.partitions + more)

    @rule(topic=st.sampled_from(TOPICS))
    def is_deleted(self, topic):
        if self.machine.topics.find(topic) is not None:
            self.machine.topics.drop(topic)

    @rule(is_slow=st.booleans())
    def log_becomes(self, is_slow):
        self.machine.log_is_slow = is_slow
        if not is_slow:
            self.machine.commit()
        self._deliver()

    @precondition(lambda self: self.machine.stores)
    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]), is_in_the_log=st.booleans())
    def log_answers(self, error, is_in_the_log):
        self.machine.commit(error, is_in_the_log=is_in_the_log or error == ErrorCode.NONE)
        self._deliver()

    @precondition(lambda self: not self.machine.stores)
    @rule()
    def successor_loads(self):
        """Who waits hears that there is another coordinator; that one knows what is in the log."""
        for client, _, _ in self.asked:
            client.hears_nothing()
        self.asked = []
        self.machine.group = self.machine.replayed()
        self.machine.timers = {timer.name: timer for timer in timers_of(self.machine.group, self.machine.rules)}
        self.highest, self.epochs = self.machine.group.epoch, {}

    def _deliver(self):
        still = []
        for client, token, is_lost in self.asked:
            if token not in self.machine.replies:
                still.append((client, token, is_lost))
            elif is_lost:
                client.hears_nothing()
            else:
                client.hears(self.machine.replies[token])
        self.asked = still

    # --- what always holds --------------------------------------------------------------------------------------------

    @invariant()
    def nothing_has_two_owners(self):
        held = [place for member in self.machine.group.members.values() for place in member.holds()]
        assert len(held) == len(set(held))

    @invariant()
    def members_read_nothing_that_is_anothers(self):
        read = [
            place
            for name, client in self.clients.items()
            if name in self.machine.group.members
            for place in places(client.owns)
        ]
        assert len(read) == len(set(read))

    @invariant()
    def epochs_do_not_go_back(self):
        group = self.machine.group
        assert group.epoch >= self.highest
        assert group.target_epoch <= group.epoch
        self.highest = group.epoch
        self.epochs = {name: epoch for name, epoch in self.epochs.items() if name in group.members}
        for name, member in group.members.items():
            assert self.epochs.get(name, 0) <= member.epoch <= group.epoch
            self.epochs[name] = member.epoch

    @invariant()
    def what_was_stored_is_what_is_served(self):
        if not self.machine.group.doubtful and not self.machine.stores:
            assert self.machine.replayed() == durable(self.machine.group)

    def teardown(self):
        if hasattr(self, "machine"):
            self._all_heartbeat_until_it_is_quiet()

    def _all_heartbeat_until_it_is_quiet(self):
        self.machine.log_is_slow = False
        self.machine.commit()
        self._deliver()
        if self.machine.group.doubtful:
            self.machine.ring(CLEAR_UP_TIMER)
        for name in [name for name in self.machine.group.members if name not in self.clients]:
            self.machine.do(SessionExpired(name))  # who is not there any more
        for _ in range(8):
            for name in list(self.clients):
                self.heartbeats(name, False)
                self.clients[name].revoke()
                self.nothing_has_two_owners()
        group = self.machine.group
        assert group.state() is (GroupState.STABLE if self.clients else GroupState.EMPTY)
        everything = {
            (topic.topic_id, partition)
            for name, topic in self.machine.topics.rows.items()
            if any(name in client.topics for client in self.clients.values())
            for partition in range(topic.partitions)
        }
        assert {place for client in self.clients.values() for place in places(client.owns)} == everything
        for name, client in self.clients.items():
            assert client.owns == group.targets.get(name, {})
        if group != Group(group.group_id):
            assert self.machine.replayed() == durable(group)


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
