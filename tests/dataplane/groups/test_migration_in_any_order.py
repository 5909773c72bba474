"""Members of both protocols come, go and fall silent, the log fails, time-outs pass, coordinators load: in any order.

At every moment no partition is read by two members of the group, whichever protocol it has; what was stored is loaded
as the group that is served; no request is answered twice. When the trouble is over, all partitions are read, each by one.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataplane.coordination.effects import CancelTimer, Reply, SetTimer, Store
from dataplane.groups.classic.model import durable_value
from dataplane.groups.consumer.events import Heartbeat, SessionExpired
from dataplane.groups.consumer.model import places
from dataplane.groups.consumer.state import CLEAR_UP_TIMER
from dataplane.groups.machine import GroupMachine
from dataplane.groups.settings import ConsumerRules, GroupSettings
from dataplane.groups.shard import Groups
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.classic_clients import ClassicClient
from tests.dataplane.groups.consumer.clients import Client
from tests.dataplane.groups.consumer.machine import durable
from tests.dataplane.groups.machine import one_by_one
from tests.dataplane.groups.support import FixedTopics

KEY = "aaaaaaaa"
GROUP = f"{KEY}.g"
TOPICS = ("t", "u")
CLASSICS, CONSUMERS = ("ann", "ben", "cat"), ("xan", "yve")
SUBSCRIPTIONS = st.sampled_from([("t",), ("t", "u")])


class Timers(dict):
    """Running ones, by name."""

    def set(self, name, _delay, event):
        self[name] = event

    def cancel(self, name):
        self.pop(name, None)

    def is_running(self, name):
        return name in self

    cancel_all = dict.clear


class Both:
    """A group at its coordinator, without one: events go in by hand, and the log says yes at once or when told to."""

    def __init__(self, sizes, **rules):
        self.topics = FixedTopics(**{f"{KEY}.{name}": size for name, size in sizes.items()})
        self.settings = GroupSettings(group_initial_rebalance_delay_ms=0, consumer=ConsumerRules(**rules))
        self.machine = GroupMachine(self.settings, self.topics)
        self.log, self.stores, self.replies = [], [], {}
        self.log_is_slow = False
        self._tokens = iter(range(1_000_000))
        self._ids = iter(range(1_000_000))
        self._open()

    def _open(self):
        self.groups = Groups(Timers, self.settings.consumer)
        self.entry = self.groups.open(GROUP)

    def do(self, event):
        for effect in one_by_one(self.machine.handle(self.entry, event, 1_000)):
            if isinstance(effect, Reply):
                assert effect.token not in self.replies, "a request was answered twice"
                self.replies[effect.token] = effect.result
            elif isinstance(effect, SetTimer):
                if not (effect.unless_running and effect.name in self.entry.timers):
                    self.entry.timers.set(effect.name, None, effect.event)
            elif isinstance(effect, CancelTimer):
                self.entry.timers.cancel(effect.name)
            else:
                assert isinstance(effect, Store)
                self.stores.append((self.machine.records(self.entry, effect.value), effect))
        if not self.log_is_slow:
            self.commit()

    def commit(self, error=ErrorCode.NONE, *, is_in_the_log=True, is_certain=False):
        """What is on its way arrives; or does not, and may be in the log all the same, if that is not certain."""
        while self.stores:
            records, store = self.stores.pop(0)
            if is_in_the_log or error == ErrorCode.NONE:
                self.log += records
            then = (store.not_appended if is_certain else None) or store.then
            self.do(replace(then, error=error))
            if self.log_is_slow:
                return

    def ask(self, event):
        token = next(self._tokens)
        if hasattr(event, "new_member_id"):
            event = replace(event, new_member_id="" if event.member_id else f"id-{next(self._ids)}")
        self.do(replace(event, token=token))
        return token

    def ring(self, name):
        self.do(self.entry.timers.pop(name))

    def load(self):
        """A successor has the group as the log has it."""
        self._open()
        for record in self.log:
            self.groups.apply(*record)
        self.entry = self.groups.open(GROUP)
        for _, timer in list(self.groups.loaded()):
            self.entry.timers.set(timer.name, None, timer.event)
        self.entry = self.groups.open(GROUP)

    @property
    def consumer(self):
        consumer = self.entry.consumer
        return consumer if consumer is not None and consumer.epoch else None

    def named(self, assignment):
        """(topic, partition)s by the tenant's names."""
        names = {topic.topic_id: name.split(".", 1)[1] for name, topic in self.topics.rows.items()}
        return {(names[topic_id], partition) for topic_id, partition in places(assignment)}


class Consumer(Client):
    """Of the consumer protocol."""

    def leaves(self):
        self.owns = {}
        return Heartbeat(self.member_id, -1)

    def next_request(self):
        asked = self.request()
        return Heartbeat(self.member_id, asked.pop("epoch"), **asked)


class AnyOrder(RuleBasedStateMachine):
    """See the file's text."""

    @initialize(cooperative=st.booleans(), sizes=st.lists(st.integers(1, 4), min_size=2, max_size=2))
    def begin(self, cooperative, sizes):
        self.cooperative = cooperative
        self.sizes = dict(zip(TOPICS, sizes, strict=True))
        self.world = Both(self.sizes)
        self.classics, self.consumers = {}, {}
        self.asked = {}  # by client: its request's token

    # --- members ------------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(CLASSICS), topics=SUBSCRIPTIONS, is_static=st.booleans())
    def starts(self, name, topics, is_static):
        if name not in self.classics:
            instance = name if is_static else None
            self.classics[name] = ClassicClient(topics, self.sizes, cooperative=self.cooperative, instance_id=instance)

    @rule(name=st.sampled_from(CONSUMERS), topics=SUBSCRIPTIONS)
    def starts_as_consumer(self, name, topics):
        if name not in self.consumers:
            self.consumers[name] = Consumer(name, tuple(f"{KEY}.{topic}" for topic in topics))

    @rule(name=st.sampled_from(CLASSICS + CONSUMERS), times=st.integers(1, 4))
    def asks(self, name, times):
        for _ in range(times):
            client = self.classics.get(name) or self.consumers.get(name)
            if client is None or name in self.asked:
                return
            if name in self.consumers:
                client.revoke()
            ask = client.next_request() if name in self.consumers else client.request()
            self.asked[name] = self.world.ask(ask)
            self._deliver()

    @rule(name=st.sampled_from(CLASSICS + CONSUMERS))
    def leaves(self, name):
        if name in self.asked:
            return
        client = self.consumers.pop(name, None)
        if client is not None:
            self.world.ask(client.leaves())
        client = self.classics.pop(name, None)
        if client is not None and client.member_id:
            self.world.ask(client.leave())
        self._deliver()

    @rule(data=st.data())
    def time_passes(self, data):
        if self.world.entry.timers:
            self.world.ring(data.draw(st.sampled_from(sorted(self.world.entry.timers))))
            self._deliver()

    # --- the cluster --------------------------------------------------------------------------------------------------

    @rule(is_slow=st.booleans())
    def log_becomes(self, is_slow):
        self.world.log_is_slow = is_slow
        if not is_slow:
            self.world.commit()
        self._deliver()

    @precondition(lambda self: self.world.stores)
    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]), is_in_the_log=st.booleans())
    def log_answers(self, error, is_in_the_log):
        self.world.commit(error, is_in_the_log=is_in_the_log)
        self._deliver()

    @precondition(lambda self: self.world.stores)
    @rule()
    def log_refuses(self):
        self.world.commit(ErrorCode.COORDINATOR_NOT_AVAILABLE, is_in_the_log=False, is_certain=True)
        self._deliver()

    @precondition(lambda self: not self.world.stores)
    @rule()
    def successor_loads(self):
        """Who waits hears that there is another coordinator, and asks again."""
        for name in self.asked:
            if name in self.consumers:
                self.consumers[name].hears_nothing()
        self.asked = {}
        self.world.load()

    def _deliver(self):
        for name, token in list(self.asked.items()):
            if token in self.world.replies:
                del self.asked[name]
                client = self.classics.get(name) or self.consumers.get(name)
                if client is not None:
                    client.hears(self.world.replies[token])

    # --- what always holds --------------------------------------------------------------------------------------------

    def _read(self):
        """What is read by those that are in the group, by their own account."""
        consumer, group = self.world.consumer, self.world.entry.group
        for name, client in self.consumers.items():
            if consumer is not None and name in consumer.members:
                yield self.world.named(client.owns)
        for client in self.classics.values():
            members = group.members if consumer is None else consumer.members
            if client.member_id in members and (consumer is not None or client.generation == group.generation):
                yield client.owns

    @invariant()
    def nothing_is_read_twice(self):
        read = [place for some in self._read() for place in some]
        assert len(read) == len(set(read))

    @invariant()
    def nothing_has_two_owners(self):
        if self.world.consumer is not None:
            held = [place for member in self.world.consumer.members.values() for place in member.holds()]
            assert len(held) == len(set(held))

    @invariant()
    def a_group_of_consumers_is_loaded_as_it_is_served(self):
        consumer = self.world.consumer
        if consumer is not None and not consumer.doubtful and not self.world.stores:
            loaded = Groups(Timers)
            for record in self.world.log:
                loaded.apply(*record)
            entry = loaded.open(GROUP)
            assert entry.consumer == durable(consumer)
            assert entry.group.is_blank()

    def teardown(self):
        if hasattr(self, "world"):
            self._all_ask_until_it_is_quiet()

    def _all_ask_until_it_is_quiet(self):
        self.world.log_is_slow = False
        self.world.commit()
        if CLEAR_UP_TIMER in self.world.entry.timers:
            self.world.ring(CLEAR_UP_TIMER)
        self._deliver()
        for number in range(20):
            for name in [*self.classics, *self.consumers]:
                self.asks(name, 4)
                self.nothing_is_read_twice()
            if number in (4, 9, 14):  # members that are there have had time to join meanwhile
                self._who_is_not_there_is_forgotten()
        read = [place for some in self._read() for place in some]
        clients = [*self.classics.values(), *self.consumers.values()]
        topics = {name.removeprefix(f"{KEY}.") for client in clients for name in client.topics}
        assert sorted(read) == [(t, p) for t in sorted(topics) for p in range(self.sizes[t])]
        assert (self.world.consumer is not None and bool(self.world.consumer.members)) == bool(self.consumers)
        if self.classics and not self.consumers:
            group = self.world.entry.group
            loaded = Groups(Timers)
            for record in self.world.log:
                loaded.apply(*record)
            assert durable_value(loaded.open(GROUP).group) == durable_value(group)

    def _who_is_not_there_is_forgotten(self):
        there = {*self.consumers, *(client.member_id for client in self.classics.values())}
        consumer = self.world.consumer
        members = self.world.entry.group.members if consumer is None else consumer.members
        for member_id in [member_id for member_id in members if member_id not in there]:
            if not self.world.entry.group.waits(member_id):  # else its client has not heard its id yet
                self.world.do(SessionExpired(member_id))
        for name in [
            name for name in self.world.entry.timers if name.startswith("pending:") or name in ("join", "sync")
        ]:
            if name in self.world.entry.timers and name.removeprefix("pending:") not in there:
                self.world.ring(name)
        self._deliver()


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
