"""Stories of groups of the consumer protocol, as those of `tests.dataplane.groups.transcripts`.

    .venv/bin/python -m tests.dataplane.groups.consumer.transcripts        writes tests/golden/groups/consumer/*.txt anew

A member is shown as: name@its epoch, its state where it is on its way, what it has (topic number: partitions)
and has to give up.
"""

from pathlib import Path

from dataplane.groups.consumer.events import Heartbeat, Stored
from dataplane.groups.consumer.model import MemberState
from dataplane.groups.records import read_record
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups import transcripts

GOLDEN = transcripts.GOLDEN / "consumer"
TOPIC = "t"


class Story(transcripts.Story):
    """With a topic of four partitions."""

    def __init__(self, title, **changes):
        super().__init__(title, **changes)
        self.topics.put(TOPIC, 4)

    def beats(self, who, epoch, **more):
        if epoch == 0:
            more = {"topics": (TOPIC,), "rebalance_timeout_ms": 60_000, "owned": {}, **more}
        number = next(self._asked)
        self.tell(f"#{number} {who}: Heartbeat")
        future = self.coordinator.consumers.heartbeat("g", Heartbeat(who, epoch, **more), lambda _: True, "")
        future.then(lambda done: self.tell(f"#{number} {who} hears {self.shown(done.result())}"))
        self.run(0.01)
        return future.result() if future.done else None

    def _handled(self, handle, entry, event, now_ms):
        before = entry.consumer
        effects = handle(entry, event, now_ms)
        said = self.shown(event)
        if isinstance(event, Stored):  # what was stored stands above, appended
            said = "Stored" if event.error == ErrorCode.NONE else f"not stored: {event.error.name}"
        self.tell(f"event {entry.group.group_id}: {said}", 2)
        was, is_now = self._consumer(before), self._consumer(entry.consumer)
        if was != is_now:
            self.tell(f"{was}  ->  {is_now}", 6)
        for effect in effects:
            self.tell(self.effect(effect), 6)
        return effects

    def _consumer(self, group):
        if group is None:
            return "none"
        members = ", ".join(map(self._member, group.members.values()))
        return f"{group.state().value} {group.epoch}/{group.target_epoch} [{members}]"

    def _member(self, member):
        state = "" if member.state is MemberState.STABLE else f" {member.state.name}"
        gives = f" gives up {self._places(member.revoking)}" if member.revoking else ""
        return f"{member.member_id}@{member.epoch}{state} {self._places(member.assigned)}{gives}"

    @staticmethod
    def _places(assignment):
        rows = (f"{topic.int}: {' '.join(map(str, partitions))}" for topic, partitions in assignment.items())
        return "{" + ", ".join(rows) + "}"

    def _appended(self, records, done):
        for record in records:
            read = read_record(*record).record
            value = "no more" if read.value is None else self.shown(read.value)
            self.tell(f"append {read.kind.name} {read.name} {value}".replace("  ", " "), 4)

        def committed(error):
            self.tell("committed" if error == ErrorCode.NONE else f"not committed: {error.name}", 4)
            done(error)

        return committed

    def shown(self, value, name=""):
        if isinstance(value, dict) and name in ("assignment", "owned"):
            return self._places(value)
        return super().shown(value, name)


def _has(story, member):
    return story.coordinator.find("g").consumer.members[member].assigned


def handover():
    story = Story("Bob comes to Ana's group: she gives two partitions up, says so, and only then he gets them")
    story.beats("ana", 0)
    story.beats("bob", 0)
    story.beats("ana", 1)
    story.beats("bob", 2)
    story.beats("ana", 1, owned=_has(story, "ana"))
    story.beats("bob", 2)
    return story


def lost_answer():
    story = Story("Ana does not hear of her new epoch: she says everything with the one before, and is told again")
    story.beats("ana", 0)
    story.topics.put(TOPIC, 5)
    had = _has(story, "ana")
    story.beats("ana", 1)
    story.beats("ana", 1, topics=(TOPIC,), rebalance_timeout_ms=60_000, owned=had)
    return story


def silent():
    story = Story("Bob does not give up in time, and is given up: Ana, whom his partitions were promised, gets them")
    story.beats("bob", 0, rebalance_timeout_ms=5_000)
    story.beats("ana", 0)
    story.beats("bob", 1)
    story.run(5)
    story.beats("ana", 2)
    story.beats("bob", 1)
    return story


def static_member():
    story = Story("A static member restarts: its partitions are kept for it, and the group's epoch stays")
    story.beats("ana", 0, instance_id="i")
    story.beats("another", 0, instance_id="i")
    story.beats("ana", -2, instance_id="i")
    story.beats("ana again", 0, instance_id="i")
    story.beats("ana", 1, instance_id="i")
    return story


def refused():
    story = Story("The log does not take Bob's join: Ana's group is as it was, and the log is told so a second later")
    story.beats("ana", 0)
    story.log.error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    story.beats("bob", 0)
    story.log.error = ErrorCode.NONE
    story.run(1)
    story.beats("ana", 1)
    return story


STORIES = {
    "handover": handover,
    "lost_answer": lost_answer,
    "silent": silent,
    "static_member": static_member,
    "refused": refused,
}


def main():
    GOLDEN.mkdir(exist_ok=True)
    for name, story in STORIES.items():
        Path(GOLDEN / f"{name}.txt").write_text(story().text(), encoding="utf-8")


if __name__ == "__main__":
    main()
