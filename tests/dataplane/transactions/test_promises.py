"""What holds whatever happens, in whichever order: an id has one producer at a time, its epoch never goes back, and what was
answered as committed is never aborted."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dataplane.coordination.effects import Begin, Reply, SetTimer, Store
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.draft import RETRY_TIMER
from dataplane.transactions.events import (
    AddPartitions,
    EndAndRaise,
    EndTransaction,
    Expired,
    Initialise,
    MarkersWritten,
    ProducerResult,
    Resume,
    TimedOut,
)
from dataplane.transactions.model import IDLE, RAISING, Transaction, TransactionState, durable_value, loaded
from dataplane.transactions.settings import TransactionSettings
from dataplane.transactions.state import handle

S = TransactionState
SETTINGS = TransactionSettings(id_expiration_ms=50)
NEARLY_EXHAUSTED = 32_763

PRODUCERS = st.integers(0, 3)  # 0: the one that was given its epoch last
STEPS = st.one_of(
    st.tuples(st.just("init")),
    st.tuples(st.just("init again"), PRODUCERS),
    st.tuples(st.just("add"), PRODUCERS, st.integers(0, 3)),
    st.tuples(st.just("add and raise"), PRODUCERS, st.integers(0, 3)),
    st.tuples(st.just("end"), PRODUCERS, st.booleans()),
    st.tuples(st.just("end and raise"), PRODUCERS, st.booleans()),
    st.tuples(st.sampled_from(["time-out", "markers", "expiry", "wait", "stored", "stored", "stored"])),
    st.tuples(st.just("refused"), st.booleans()),
    st.tuples(st.just("fail-over"), st.integers(0, 2)),
)


BY_PRODUCERS = ("add", "add and raise", "end", "end and raise", "init again")


class Walk:
    """One id, its log, the producers that were given an epoch, and what they were told."""

    def __init__(self, epoch):
        self.transaction = Transaction("t")
        self.now_ms = 1_000
        self.stores = []
        self.log = []  # values, in order; what was not said to be committed may be lost by a fail-over
        self.committed = 0  # how many of the log's are
        self.given = []  # (producer id, epoch), as told
        self.asked = {}  # by token
        self.markers = []  # what is said when markers are written, or again when the log refused the completion
        self.told_committed = set()  # (producer id, begun)
        self.ends = {}  # (producer id, begun): states in which markers were written
        self.next_id = 7
        self.do(Initialise(60_000, None, self.next_id, token=0))
        self.stored()
        if epoch:
            self.transaction = replace(self.transaction, producer_epoch=epoch)
            self.log = [durable_value(self.transaction)]
            self.given = [(7, epoch)]

    def step(self, kind, *args):
        self.now_ms += 1
        token = len(self.asked) + 1
        who = self.given[-1 - args[0]] if args and kind in BY_PRODUCERS and args[0] < len(self.given) else None
        if kind == "init":
            self.ask(Initialise(60_000, None, self.new_id(), token))
        elif kind == "init again" and who is not None:
            self.ask(Initialise(60_000, who, self.new_id(), token))
        elif kind == "add" and who is not None and not self.transaction.is_blank():
            self.ask(AddPartitions(*who, (("orders", args[1]),), token=token))
        elif kind == "add and raise" and who is not None and not self.transaction.is_blank():
            self.ask(AddPartitions(*who, (("orders", args[1]),), version=RAISING, token=token))
        elif kind == "end" and who is not None and not self.transaction.is_blank():
            self.ask(EndTransaction(*who, args[1], token))
        elif kind == "end and raise" and who is not None and not self.transaction.is_blank():
            self.ask(EndAndRaise(*who, args[1], self.new_id(), token))
        elif kind == "time-out":
            self.do(TimedOut())
        elif kind == "markers" and self.markers:
            self.do(self.markers.pop())
        elif kind == "expiry":
            self.do(Expired())
        elif kind == "wait":
            self.now_ms += 30
        elif kind == "stored":
            self.stored()
        elif kind == "refused" and self.stores:
            self.stored(ErrorCode.COORDINATOR_NOT_AVAILABLE, is_kept=args[0])
        elif kind == "fail-over":
            self.fail_over(args[0])

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def ask(self, event):
        self.asked[event.token] = (event, self.transaction)
        self.do(event)

    def do(self, event):
        self.transaction, effects = handle(self.transaction, event, SETTINGS, self.now_ms)
        for effect in effects:
            if isinstance(effect, Reply):
                self.told(effect.token, effect.result)
            elif isinstance(effect, Store):
                self.stores.append(effect)
                self.log.append(effect.value)
            elif isinstance(effect, Begin):
                self.begun(effect.work.transaction)
            elif isinstance(effect, SetTimer) and effect.name == RETRY_TIMER:
                self.markers.append(effect.event)

    def stored(self, error=ErrorCode.NONE, is_kept=True):
        if not self.stores:
            return
        store = self.stores.pop(0)
        if error == ErrorCode.NONE:
            self.committed = len(self.log)
        elif not is_kept:
            self.log.pop()
        self.do(replace(store.then, error=error))

    def fail_over(self, lost):
        """The successor has what was committed, and of the rest so much as its log had."""
        kept = max(self.committed, len(self.log) - lost)
        del self.log[kept:]
        self.committed = len(self.log)
        value = self.log[-1] if self.log else None
        self.transaction = Transaction("t") if value is None else loaded("t", value)
        self.stores, self.markers = [], []
        self.do(Resume())

    def begun(self, decided):
        key = decided.producer_id, decided.started_ms
        self.ends.setdefault(key, set()).add(decided.state)
        self.markers.append(MarkersWritten(decided.producer_id, decided.producer_epoch))
        assert len(self.ends[key]) == 1, "committed and aborted"

    def told(self, token, result):
        event, before = self.asked.get(token, (None, None))
        if isinstance(event, EndAndRaise):
            if result.error == ErrorCode.NONE:
                self.has_ended(event, before, (result.producer_id, result.producer_epoch))
        elif isinstance(result, ProducerResult):
            if result.error == ErrorCode.NONE:
                self.is_given(event, (result.producer_id, result.producer_epoch))
        elif result == ErrorCode.NONE:
            who = event.producer_id, event.producer_epoch
            assert who == self.given[-1], "somebody has a newer epoch"
            if isinstance(event, EndTransaction) and event.is_commit:
                self.told_committed.add((event.producer_id, before.started_ms))

    def has_ended(self, event, before, who):
        """What it goes on with: another epoch, of which it is told again as long as nobody has used it."""
        if (event.producer_id, event.producer_epoch) == self.given[-1]:
            assert who > self.given[-1]
            self.given.append(who)
        else:
            assert who == self.given[-1], "somebody has a newer epoch"
        if event.is_commit:
            self.told_committed.add((event.producer_id, before.started_ms))

    def is_given(self, event, who):
        if self.given:
            is_again = event is not None and event.known is not None and who == self.given[-1]
            assert is_again or who > self.given[-1], "an epoch is given once, and none below it"
        self.given.append(who)


@given(st.lists(STEPS, max_size=40), st.sampled_from([0, NEARLY_EXHAUSTED]))
def test_the_promises_hold(steps, epoch):
    walk = Walk(epoch)
    for step in steps:
        walk.step(*step)
        transaction = walk.transaction
        assert len(walk.stores) <= 1, "one thing at a time is on its way"
        assert transaction.pending is not None or not walk.stores
        assert not transaction.partitions or transaction.state not in IDLE
    while walk.stores or walk.markers:
        walk.step("stored")
        walk.step("markers")
    for key in walk.told_committed:
        assert walk.ends[key] == {S.PREPARE_COMMIT}
    assert walk.transaction.pending is None
    if walk.committed == len(walk.log) and not walk.transaction.is_blank():  # else its end was refused, and is there
        assert loaded("t", walk.log[-1]).state is walk.transaction.state


@given(st.lists(STEPS, max_size=25))
def test_whoever_was_told_that_it_is_fenced_never_commits(steps):
    walk = Walk(0)
    fenced = set()
    tell = walk.told

    def told(token, result):
        event = walk.asked.get(token, (None,))[0]
        if isinstance(event, AddPartitions | EndTransaction | EndAndRaise):
            who = event.producer_id, event.producer_epoch
            error = result.error if isinstance(result, ProducerResult) else result
            assert not (error == ErrorCode.NONE and who in fenced)
            if error == ErrorCode.PRODUCER_FENCED:
                fenced.add(who)
        tell(token, result)

    walk.told = told
    for step in steps:
        if (
            step[0] != "fail-over"
        ):  # a successor knows nothing of a fence that is not in its log, and nobody was given an epoch
            walk.step(*step)
