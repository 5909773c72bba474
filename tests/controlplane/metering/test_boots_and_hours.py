"""An hour that is called final does not change any more, whatever became of boots: property tests over the life of a broker.

The broker of the model has two disks that are mounted or not, a clock that may be wrong, and dies at any moment. It does what
dataplane/metering does: it counts in the first disk that is there, tells what earlier boots left on those that are, keeps in
its file which boots were told, and speaks once an hour. Records reach the reader in order within a partition, and each partition
at its own pace; some come twice. The reader knows what the database knows: statements, boots, and what it has dropped.

A boot that dies before it has told anything, on a disk that is not there when the next one starts, is known to nobody. What it
counted is late usage when the disk is back, and goes onto the next invoice: of such boots no hour is said to be final.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from controlplane.metering.pipeline.statements import Boot, Statement, superseded, told

HOUR = 60  # minutes: time is a number of minutes here
PARTITIONS = 3


def text(hour):
    return f"h{hour:04}"


@dataclass
class File:
    """What a boot leaves on a disk."""

    boot: str
    counter: int = 0
    hour: int = 0
    floor: int = 0
    told: set = field(default_factory=set)  # boots

    def boots(self):
        return {self.boot, *self.told}


class Broker:
    """Counts one topic."""

    def __init__(self, dice, topic):
        self.dice, self.topic = dice, topic
        self.disks = [{}, {}]  # by name of a file
        self.mounted = [True, True]
        self.boots, self.now, self.skew = 0, 10 * HOUR, 0
        self.used = {}  # (boot) -> counted, for those who ask afterwards
        self.boot = None
        self.start()

    def start(self):
        if not any(self.mounted):
            self.mounted[self.dice.randrange(2)] = True
        self.boots += 1
        self.boot = f"b{self.boots:03}"
        seen = [disk for disk, is_there in zip(self.disks, self.mounted, strict=True) if is_there]
        self.former = [(disk, file) for disk in seen for file in disk.values()]
        self.after = set().union(*(file.boots() for _, file in self.former)) if self.former else set()
        floor = max((file.floor for _, file in self.former), default=0)
        self.hour = max(self.clock_hour(), floor)
        self.file = seen[0][self.boot] = File(self.boot, hour=self.hour, floor=floor)
        self.in_topic = 0  # of the counter, so much is in the topic
        self.used[self.boot] = 0

    def clock_hour(self):
        return (self.now + self.skew) // HOUR

    def count(self, size):
        self.turn()
        self.file.counter += size
        self.used[self.boot] += size

    def turn(self):
        """The hour of the clock, which only goes forward."""
        hour = max(self.clock_hour(), self.file.floor)
        if hour > self.hour:
            self.tell()  # under the hour that ends
            self.hour = hour
        self.file.hour = self.hour

    def tell(self):
        if self.file.counter > self.in_topic:
            self.topic.usage(self.boot, self.hour, self.file.counter, self.now)
            self.in_topic = self.file.counter

    def tell_former(self):
        for disk, file in self.former:
            if file.counter:
                self.topic.usage(file.boot, file.hour, file.counter, self.now)
            self.file.told |= file.boots()
            disk.pop(file.boot, None)
        self.former = []

    def speak(self):
        self.turn()
        hour = min(self.clock_hour(), self.hour) - 1
        if self.former or hour < self.file.floor:
            return
        self.file.floor = hour + 1
        self.topic.statement(self.boot, hour, self.after, self.now)

    def die(self):
        self.boot = None


class Topic:
    """Partitions of `__usage`; what is read of them."""

    def __init__(self, dice):
        self.dice = dice
        self.partitions = [[] for _ in range(PARTITIONS)]
        self.read = [0] * PARTITIONS
        self.looked = [0] * PARTITIONS

    def usage(self, boot, hour, counter, now):
        record = ("usage", boot, min(hour, now // HOUR), counter, now)
        for _ in range(self.dice.choice([1, 1, 2])):  # an acknowledgement that is lost: told again
            self.partitions[hash_of(boot, hour)].append(record)

    def statement(self, boot, hour, after, now):
        self.partitions[0].append(("statement", boot, min(hour, now // HOUR - 1), tuple(sorted(after)), now))


def hash_of(boot, hour):
    return (int(boot[1:]) * 7 + hour) % PARTITIONS


class Reader:
    """What the job and the database keep."""

    def __init__(self):
        self.maxima, self.statements, self.boots, self.is_told = {}, [], {}, set()
        self.number = 0
        self.judged = set()

    def take(self, record):
        kind, boot, hour, what, at = record
        if kind == "statement":
            self.number += 1
            self.statements.append(Statement(self.number, 1, text(hour), boot, what, at))
            return
        self.maxima[boot, hour] = max(self.maxima.get((boot, hour), 0), what)
        known = self.boots.get(boot)
        first, last, first_at = (hour, hour, at) if known is None else known
        self.boots[boot] = (min(first, hour), max(last, hour), min(first_at, at))

    def open_boots(self):
        return [
            Boot(1, boot, text(first), text(last), at)
            for boot, (first, last, at) in sorted(self.boots.items())
            if boot not in self.is_told
        ]

    def final(self, read_to):
        """The last hour that is final; "": none. Then what is superseded is dropped, as the job does."""
        certain = told([each for each in self.statements if each.said_at_ms <= read_to], self.judged, self.open_boots())
        dropped_by, ids = superseded(self.statements, read_to, self.judged, self.open_boots())
        assert dropped_by == certain
        self.is_told |= certain.accounted & self.boots.keys()
        self.statements = [
            each._replace(hour=certain.hour) if each.id == certain.last.id else each
            for each in self.statements
            if each.id not in ids
        ] if certain.last else self.statements  # fmt: skip
        again = told([each for each in self.statements if each.said_at_ms <= read_to], self.judged, self.open_boots())
        assert again.hour == certain.hour
        return certain.hour

    def known(self):
        """Boots that have told usage, or spoken."""
        return {*self.boots, *(each.boot for each in self.statements)}

    def hours(self, boots=None):
        """hour -> used in it, by these boots (None: all): largest minus the largest of any earlier hour of the boot."""
        found = {}
        for boot in {boot for boot, _ in self.maxima if boots is None or boot in boots}:
            before = 0
            for hour, counter in sorted((hour, counter) for (of, hour), counter in self.maxima.items() if of == boot):
                found[hour] = found.get(hour, 0) + max(0, counter - before)
                before = max(before, counter)
        return {text(hour): used for hour, used in found.items() if used}


class Life:
    """One random sequence, and what was called final at each moment."""

    def __init__(self, seed, *, disks=False, clocks=False):
        self.dice = random.Random(seed)
        self.topic = Topic(self.dice)
        self.broker, self.reader = Broker(self.dice, self.topic), Reader()
        self.disks, self.clocks = disks, clocks
        self.finals = []  # (last final hour, boots that were known, their hours up to it as they were then)

    def step(self):
        broker, dice = self.broker, self.dice
        broker.now += dice.choice([1, 1, 3, 10, 40])
        if broker.boot is None:
            if dice.random() < 0.6:
                broker.start()
        else:
            what = dice.choice(["count", "count", "count", "tell", "tell", "former", "former", "speak", "speak", "die"])
            if what == "count":
                broker.count(dice.randint(1, 1000))
            elif what == "tell":
                broker.turn()
                broker.tell()
            elif what == "former":
                broker.tell_former()
            elif what == "speak":
                broker.speak()
            elif dice.random() < 0.5:
                broker.die()
        if self.disks and dice.random() < 0.1:
            broker.mounted[dice.randrange(2)] = dice.random() < 0.6
        if self.clocks and dice.random() < 0.05:
            broker.skew = dice.choice([0, 0, -150, -20, 20, 150])
        if dice.random() < 0.5:
            self.read()

    def read(self, *, everything=False):
        for number, records in enumerate(self.topic.partitions):
            end = len(records) if everything else self.dice.randint(self.topic.read[number], len(records))
            for record in records[self.topic.read[number] : end]:
                self.reader.take(record)
            usage = [record for record in records[:end] if record[0] == "usage"]
            if usage and self.dice.random() < 0.1:  # a batch that runs again
                self.reader.take(self.dice.choice(usage))
            self.topic.read[number] = end
            if end == len(records):
                self.topic.looked[number] = self.broker.now
        final = self.reader.final(min(self.topic.looked))
        known = self.reader.known()
        self.finals.append((final, known, until(final, self.reader.hours(known))))

    def end(self):
        """All disks come back, clocks are right, and the broker lives for some hours."""
        broker = self.broker
        broker.mounted, broker.skew = [True, True], 0
        broker.now += 4 * HOUR  # behind whatever a clock that was ahead has counted under
        if broker.boot is not None:
            broker.die()
        broker.start()
        broker.tell_former()
        for _ in range(3):
            broker.turn()
            broker.tell()
            broker.speak()
            broker.now += HOUR
        self.read(everything=True)


def until(final, hours):
    return {hour: used for hour, used in hours.items() if hour <= final}


CASES = [(disks, clocks) for disks in (False, True) for clocks in (False, True)]


@pytest.mark.parametrize(("disks", "clocks"), CASES, ids=[f"disks={d} clocks={c}" for d, c in CASES])
@pytest.mark.parametrize("seed", range(20))
def test_of_an_hour_that_was_final_nothing_changes_and_in_the_end_all_is_counted_once(seed, disks, clocks):
    life = Life(seed, disks=disks, clocks=clocks)
    for _ in range(250):
        life.step()
    life.end()
    hours = life.reader.hours()
    for final, known, then in life.finals:
        if disks and clocks:
            break  # who knows no disk may count under any hour that its clock says: late usage again
        counted = life.reader.hours(known) if disks else hours
        assert until(final, counted) == then, f"hours up to {final} have changed"
    finals = [final for final, _, _ in life.finals if final]
    assert finals == sorted(finals), "what was final stays so"
    assert sum(hours.values()) == sum(life.broker.used.values()), "nothing is lost, nothing is doubled"
    assert finals[-1] >= text(life.broker.now // HOUR - 2), "once all disks are back, nobody has to judge anything"


@pytest.mark.parametrize("seed", range(20))
def test_a_broker_that_keeps_its_disks_and_its_clock_needs_no_operator(seed):
    life = Life(seed)
    for _ in range(250):
        life.step()
        assert told(life.reader.statements, (), life.reader.open_boots()).gap is None
    life.end()
    last_hour = text(life.broker.now // HOUR - 2)
    assert life.finals[-1][0] >= last_hour


@pytest.mark.parametrize("seed", range(20))
def test_where_a_disk_is_gone_for_good_hours_stay_open_until_an_operator_has_judged_it(seed):
    dice = random.Random(seed)
    topic = Topic(dice)
    broker, reader = Broker(dice, topic), Reader()
    broker.tell_former()
    broker.speak()
    broker.now += HOUR
    broker.speak()
    for _ in range(dice.randint(0, 3)):  # boots that never speak, of which each has told the one before it
        broker.die()
        broker.start()
        broker.tell_former()
        broker.count(dice.randint(1, 1000))
        broker.tell()
    broker.count(5)  # told to nobody
    broker.die()
    broker.disks[0].clear()
    broker.start()
    broker.now += 3 * HOUR
    broker.count(7)
    broker.tell()
    broker.speak()
    for records in topic.partitions:
        for record in records:
            reader.take(record)
    found = told(reader.statements, (), reader.open_boots())
    assert found.gap is not None
    assert found.lost
    assert found.hour < text(broker.now // HOUR - 1)
    reader.judged = {found.gap.boot}
    assert reader.final(broker.now) == text(broker.now // HOUR - 1)
