"""Stories of transactions, event by event: what was asked, what the state machine made of it, what was stored, who heard what.

    .venv/bin/python -m tests.dataplane.transactions.transcripts        writes tests/golden/transactions/*.txt anew

A transcript reads in order of time (seconds on the left). A line without a time happened at the same moment.

    #1 ana: Initialise   somebody asks
    event t              an event of the transactional id t, with all that it carries; below it how it changed, and the effects
    append, committed    a record is appended; the in-sync replicas have it
    markers to broker 1  what a leader is asked to write; below it what it has answered
    #1 ana hears         the answer to that request

What a value leaves out is as its type has it by default.
"""

from itertools import count
from pathlib import Path

from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.events import AddPartitions, EndAndRaise, EndTransaction, Initialise, Stored
from dataplane.transactions.model import RAISING
from dataplane.transactions.records import read_record
from tests.dataplane.coordination.telling import Telling
from tests.dataplane.transactions.support import A, B, C, World

GOLDEN = Path(__file__).parents[2] / "golden" / "transactions"


class Story(Telling, World):
    """A coordinator of which everything is written down."""

    def __init__(self, title, **changes):
        self.entitle(title)
        self._asked = count(1)
        super().__init__(**changes)
        self.begins_now()
        append, call = self.log.append, self.leaders.call
        self.log.append = lambda index, records, done, producer: append(
            index, records, self._appended(records, done), producer
        )
        self.leaders.call = lambda *asked: self._markers(call, *asked)
        self.coordinator._markers._call = self.leaders.call

    def new_coordinator(self):
        coordinator = super().new_coordinator()
        machine = coordinator._runtime._machine
        handle = machine.handle
        machine.handle = lambda entry, event, now_ms: self._handled(handle, entry, event, now_ms)
        return coordinator

    # --- what happens -------------------------------------------------------------------------------------------------

    def ask(self, who, request):
        number = next(self._asked)
        self.tell(f"#{number} {who}: {type(request).__name__}")
        methods = {
            Initialise: "initialise",
            AddPartitions: "add_partitions",
            EndTransaction: "end",
            EndAndRaise: "end_and_raise",
        }
        future = getattr(self.coordinator, methods[type(request)])("t", request)
        future.then(lambda answered: self.tell(f"#{number} {who} hears {self.shown(answered.result())}"))
        self.run(0.01)
        return future

    def begins(self, who, known=None):
        result = self.ask(who, Initialise(60_000, known)).result()
        return result.producer_id, result.producer_epoch

    def adds(self, who, producer, *partitions):
        return self.ask(who, AddPartitions(*producer, partitions))

    def ends(self, who, producer, *, is_commit=True):
        return self.ask(who, EndTransaction(*producer, is_commit))

    def adds_with_a_batch(self, broker, producer, *partitions):
        return self.ask(broker, AddPartitions(*producer, partitions, version=RAISING))

    def ends_and_goes_on(self, who, producer, *, is_commit=True):
        result = self.ask(who, EndAndRaise(*producer, is_commit)).result()
        return result.producer_id, result.producer_epoch

    def succeeds(self):
        self.tell("another broker leads the partition, with the same log")
        self.take_over()

    # --- what is written down -----------------------------------------------------------------------------------------

    def _handled(self, handle, entry, event, now_ms):
        before = entry.transaction
        effects = handle(entry, event, now_ms)
        said = f"Stored({event.error.name})" if isinstance(event, Stored) else self.shown(event)
        self.tell(f"event {before.transactional_id}: {said}", 2)
        was, is_now = self._transaction(before), self._transaction(entry.transaction)
        if was != is_now:
            self.tell(f"{was}  ->  {is_now}", 6)
        for effect in effects:
            self.tell(self.effect(effect), 6)
        return effects

    def _transaction(self, transaction):
        partitions = ", ".join(f"{topic}-{index}" for topic, index in transaction.partitions)
        pending = "" if transaction.pending is None else f", on its way to {transaction.pending.value}"
        who = f"{transaction.producer_id}/{transaction.producer_epoch}"
        return f"{transaction.state.value} {who} [{partitions}]{pending}"

    def _appended(self, records, done):
        for key, value in records:
            record = read_record(key, value)
            said = "a tombstone" if record.value is None else self.shown(record.value)
            self.tell(f"append {record.transactional_id}: {said}", 4)

        def committed(error):
            self.tell("committed" if error == ErrorCode.NONE else f"not committed: {error.name}", 4)
            done(error)

        return committed

    def _markers(self, call, broker, request, version, timeout_s):
        for marker in request.markers:
            self.tell(f"markers to broker {broker}: {self.shown(marker)}", 4)
        answer = call(broker, request, version, timeout_s)
        answer.then(lambda future: self.tell(f"broker {broker} answers {self._codes(future)}", 4))
        return answer

    @staticmethod
    def _codes(future):
        if future.error is not None:
            return "nothing"
        rows = [
            f"{topic.name}-{row.partition_index}: {ErrorCode(row.error_code).name}"
            for marker in future.result().markers
            for topic in marker.topics
            for row in topic.partitions
        ]
        return ", ".join(rows)


# --- the stories ------------------------------------------------------------------------------------------------------


def commit():
    story = Story("Ana writes to three partitions on two brokers and commits, and then once more to one")
    ana = story.begins("ana")
    story.adds("ana", ana, A, B)
    story.adds("ana", ana, C)
    story.ends("ana", ana)
    story.run(1)
    story.ends("ana", ana)
    story.adds("ana", ana, A)
    story.ends("ana", ana, is_commit=False)
    story.run(1)
    return story


def fencing():
    story = Story("A second Ana begins while the first has a transaction open: it is aborted, and the first is fenced")
    first = story.begins("ana")
    story.adds("ana", first, A)
    story.begins("the new ana")
    story.ends("ana", first)
    story.run(1)
    second = story.begins("the new ana")
    story.adds("the new ana", second, A)
    return story


def time_out():
    story = Story("Ana falls silent with a transaction open: after its time it is aborted, and she is fenced")
    ana = story.begins("ana")
    story.adds("ana", ana, A)
    story.run(60)
    story.adds("ana", ana, B)
    return story


def slow_leader():
    story = Story("One partition has no leader for a while: Ana is answered, and waits before her next transaction")
    ana = story.begins("ana")
    story.adds("ana", ana, A, C)
    story.leaders.codes[A] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    story.ends("ana", ana)
    story.adds("ana", ana, C)
    story.topics.leaders[A] = 2
    del story.leaders.codes[A]
    story.run(1)
    story.adds("ana", ana, C)
    return story


def fail_over():
    story = Story("The coordinator moves after Ana was told that she has committed, before anybody else was")
    ana = story.begins("ana")
    story.adds("ana", ana, A, B)
    story.leaders.held = True
    story.ends("ana", ana)
    story.leaders._held.clear()
    story.leaders.held = False
    story.succeeds()
    story.run(1)
    story.ends("ana", ana)
    return story


def refused():
    story = Story("The log does not take a commit, and then it does")
    ana = story.begins("ana")
    story.adds("ana", ana, A)
    story.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    story.ends("ana", ana)
    story.log.error = ErrorCode.NONE
    story.ends("ana", ana)
    story.run(1)
    return story


def recovery():
    story = Story(
        "Ana asks for a higher epoch and does not hear the answer: asking again she is told the same (KIP-360)"
    )
    ana = story.begins("ana")
    story.begins("ana", ana)
    story.begins("ana", ana)
    story.begins("another ana")
    story.begins("ana", ana)
    return story


def expiry():
    story = Story("Nobody uses an id for as long as ids are kept: it is removed", id_expiration_ms=100_000)
    story.begins("ana")
    story.run(101)
    story.begins("ana")
    return story


def own_epochs():
    story = Story(
        "Bob adds no partitions himself, and has an epoch for each transaction; once its answer is lost (KIP-890)"
    )
    bob = story.begins("bob")
    story.adds_with_a_batch("the leader of orders-0", bob, A)
    again = story.ends_and_goes_on("bob", bob)
    story.run(1)
    story.ends_and_goes_on("bob", bob)
    story.adds_with_a_batch("the leader of orders-0", bob, A)
    story.adds_with_a_batch("the leader of events-0", again, C)
    story.ends_and_goes_on("bob, who is late", bob)
    last = story.ends_and_goes_on("bob", again, is_commit=False)
    story.run(1)
    story.ends_and_goes_on("bob, who has begun nothing", last, is_commit=False)
    return story


STORIES = {
    "own_epochs": own_epochs,
    "commit": commit,
    "fencing": fencing,
    "time_out": time_out,
    "slow_leader": slow_leader,
    "fail_over": fail_over,
    "refused": refused,
    "recovery": recovery,
    "expiry": expiry,
}


def main():
    GOLDEN.mkdir(exist_ok=True)
    for name, story in STORIES.items():
        (GOLDEN / f"{name}.txt").write_text(story().text(), encoding="utf-8")


if __name__ == "__main__":
    main()
