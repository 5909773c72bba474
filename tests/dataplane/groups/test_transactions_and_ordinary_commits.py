"""Whatever is committed, in transactions or not, removed, ended, compacted, and whoever leads: what counts is the log.

A naive model reads the log as a list and says for each offset what is visible and what is pending. The coordinator says the
same, one that was there all the time and one that has just loaded, also when compaction has left only a part of the log.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.coordination.effects import Producer
from dataplane.coordination.placement import partition_of
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.records import OffsetRecord, read_record
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.coordination.support import Batch
from tests.dataplane.groups.support import PARTITIONS, World

INDEX = partition_of("g", PARTITIONS)
KEYS = [("t", 0), ("t", 1), ("u", 0)]
PRODUCERS = [7, 8, 9]
STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sets(st.sampled_from(KEYS), min_size=1)),
    st.tuples(st.just("in transaction"), st.sampled_from(PRODUCERS), st.sets(st.sampled_from(KEYS), min_size=1)),
    st.tuples(st.just("in transaction"), st.sampled_from(PRODUCERS), st.sets(st.sampled_from(KEYS), min_size=1)),
    st.tuples(st.just("marker"), st.sampled_from(PRODUCERS), st.booleans()),
    st.tuples(st.just("remove"), st.sampled_from(KEYS)),
    st.tuples(st.sampled_from(["replicated", "fail-over", "compaction"])),
    st.tuples(st.sampled_from(["replicated", "refused", "delete group"])),
)


class Walk(World):
    """A coordinator whose log is committed when a step says so."""

    def __init__(self):
        super().__init__()
        self.log.slow = True
        self.serial = 0
        self.markers = []  # that are in the log and not replicated yet

    def step(self, kind, *args):
        getattr(self, kind.replace(" ", "_").replace("-", "_"))(*args)
        self.run(0.01)

    def commit(self, keys, producer=None):
        self.serial += 1
        offsets = {key: Offset(self.serial) for key in sorted(keys)}
        return self.coordinator.commit("g", Commit(offsets, producer=producer))

    def in_transaction(self, producer_id, keys):
        if producer_id not in [marked for marked, _ in self.markers]:  # else its next transaction cannot have begun
            self.commit(keys, Producer(producer_id, 0))

    def marker(self, producer_id, committed):
        if producer_id not in [marked for marked, _ in self.markers]:
            self.log.mark(INDEX, producer_id, committed=committed)
            self.markers.append((producer_id, committed))

    def remove(self, key):
        self.coordinator.delete_offsets("g", [key])

    def delete_group(self):
        self.coordinator.delete_group("g")

    def refused(self):
        self.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
        self.commit(KEYS)
        self.commit(KEYS, Producer(7, 0))
        self.log.error = ErrorCode.NONE

    def replicated(self):
        self.log.commit()
        markers, self.markers = self.markers, []
        for producer_id, committed in markers:
            self.coordinator.transaction_ended(INDEX, producer_id, committed=committed)

    def fail_over(self):
        self.log.waiting, self.markers = [], []
        self.take_over()

    def compaction(self):
        self.log.batches[INDEX] = compacted(self.log.batches.get(INDEX, []))

    def served(self):
        visible = {key: value.offset for key, value in self.coordinator.committed("g").items()}
        return visible, {key for key in KEYS if self.coordinator.unstable("g")(key)}


def outcome(batches, position):
    """How the transaction of a batch has ended; None: it is open. Outside of transactions all is committed."""
    producer = batches[position].producer
    if producer is None:
        return True
    later = batches[position + 1 :]
    return next((b.committed for b in later if b.committed is not None and b.producer.id == producer.id), None)


def read(batches):
    """Each record of an offset: its place, key, value and what became of it."""
    for position, batch in enumerate(batches):
        for record in batch.records:
            found = read_record(*record)
            if isinstance(found, OffsetRecord):
                yield position, (found.topic, found.partition), found.value, outcome(batches, position)


def naive(batches):
    """What is visible and what is pending: of each offset the last record that counts, and what is open behind tombstones."""
    visible, pending = {}, set()
    for _, key, value, ended in read(batches):
        if value is None:
            visible.pop(key, None)
            pending.discard(key)
        elif ended is None:
            pending.add(key)
        elif ended:
            visible[key] = value.offset
    return visible, pending


def compacted(batches):
    """Before the first open transaction: of each key the last record that is not aborted, and no old tombstone.

    Each is kept at its place.
    """
    ended = [outcome(batches, position) for position in range(len(batches))]
    stable = next((n for n, b in enumerate(batches) if b.committed is None and ended[n] is None), len(batches))
    last = {key: n for n in range(stable) for key, _ in batches[n].records if ended[n]}
    kept = [
        Batch([(k, v) for k, v in b.records if ended[n] and last[k] == n and v is not None], b.producer, b.committed)
        for n, b in enumerate(batches[:stable])
    ]
    return [*kept, *batches[stable:]]


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_who_serves_says_what_the_log_says(steps):
    walk = Walk()
    expected = [Batch([])]
    for step in steps:
        seen = len(walk.log.batches.get(INDEX, []))
        walk.step(*step)
        expected += walk.log.batches.get(INDEX, [])[seen:]  # the whole log, whatever was compacted since
        if not walk.log.waiting and not walk.markers:
            assert walk.served() == naive(expected)
    walk.step("fail-over")
    assert walk.served() == naive(expected)
    for producer_id in PRODUCERS:
        walk.step("marker", producer_id, True)
    walk.step("replicated")
    expected = [*expected, *(Batch([], Producer(producer_id, 0), True) for producer_id in PRODUCERS)]
    assert walk.served() == naive(expected)
    assert walk.served()[1] == set()
