"""Stories of groups, event by event: what was asked, what the state machine made of it, what was stored, who heard what.

    .venv/bin/python -m tests.dataplane.groups.transcripts        writes tests/golden/groups/*.txt anew

A transcript reads in order of time (seconds on the left). A line without a time happened at the same moment.

    #1 ana: Join         somebody asks
    event g              an event of group g, with all that it carries; below it how the group changed, and the effects
    append, committed    a record is appended; the in-sync replicas have it
    #1 ana hears         the answer to that request

What a value leaves out is as its type has it by default. A member's id is its client's name and, for its UUID, a number.
"""

from dataclasses import replace
from itertools import count
from pathlib import Path

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.groups.classic.events import AssignmentStored, Heartbeat, Join, Leave, Sync
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.records import read_record
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.coordination.telling import Telling
from tests.dataplane.groups.machine import one_by_one
from tests.dataplane.groups.support import World

GOLDEN = Path(__file__).parents[2] / "golden" / "groups"


class Story(Telling, World):
    """A coordinator of which everything is written down."""

    def __init__(self, title, **changes):
        self.entitle(title)
        self._asked = count(1)
        super().__init__(**changes)
        self.begins_now()
        append = self.log.append
        self.log.append = lambda index, records, done, producer: append(
            index, records, self._appended(records, done), producer
        )

    def new_coordinator(self):
        coordinator = super().new_coordinator()
        machine = coordinator._runtime._machine
        handle = machine.handle
        machine.handle = lambda entry, event, now_ms: self._handled(handle, entry, event, now_ms)
        return coordinator

    # --- what happens -------------------------------------------------------------------------------------------------

    def ask(self, who, request, group="g"):
        number = next(self._asked)
        asked = (
            self.shown(request) if isinstance(request, Commit) else type(request).__name__
        )  # the event tells the rest
        self.tell(f"#{number} {who}: {asked}")
        method = {Join: "join", Sync: "sync", Heartbeat: "heartbeat", Leave: "leave", Commit: "commit"}[type(request)]
        future = getattr(self.coordinator, method)(group, request)
        future.then(lambda answered: self.tell(f"#{number} {who} hears {self.shown(answered.result())}"))
        self.run(0.01)
        return future

    def joins(self, who, member_id="", **more):
        more = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "client_id": who, **more}
        return self.ask(who, Join(member_id, "consumer", (("range", b"topics"),), **more))

    def syncs(self, who, member_id, generation=1, instance_id=None, **assignments):
        return self.ask(who, Sync(generation, member_id, instance_id, assignments=assignments))

    def commits(self, who, member_id, generation, offset):
        return self.ask(who, Commit({("t", 0): Offset(offset)}, generation, member_id))

    def beats(self, who, member_id, generation=1, instance_id=None):
        return self.ask(who, Heartbeat(generation, member_id, instance_id))

    def tells_offset(self):
        """What a consumer of partition 0 would go on from."""
        found, unstable = self.coordinator.committed("g").get(("t", 0)), self.coordinator.unstable("g")(("t", 0))
        self.tell(
            f"offset of t-0: {'none' if found is None else found.offset}{', a commit is on its way' if unstable else ''}"
        )

    def elected(self, epoch, *, held=False):
        self.tell(f"elected: this broker leads the partition in epoch {epoch}")
        self.background.held = held
        for index in range(4):
            self.coordinator.on_leadership(OFFSETS_TOPIC, index, epoch)
        self.run(0.01)

    def loaded(self):
        self.tell("the disk answers: the partition is read to its end")
        self.background.held = False
        self.background.release()
        self.run(0.01)

    def resigned(self):
        self.tell("resigned: another broker leads the partition")
        self.resign()

    # --- what is written down -----------------------------------------------------------------------------------------

    def _handled(self, handle, entry, event, now_ms):
        before = entry.group
        effects = handle(entry, event, now_ms)
        said = replace(event, value=None) if isinstance(event, AssignmentStored) else event  # it stands above, appended
        self.tell(f"event {before.group_id}: {self.shown(said)}", 2)
        was, is_now = self._group(before), self._group(entry.group)
        if was != is_now:
            self.tell(f"{was}  ->  {is_now}", 6)
        for effect in one_by_one(effects):
            self.tell(self.effect(effect), 6)
        return effects

    def _group(self, group):
        members = [
            member.member_id
            + (" joins" if member.member_id in group.joining else "")
            + (" syncs" if member.member_id in group.syncing else "")
            + (" (leader)" if member.member_id == group.leader else "")
            for member in group.members.values()
        ]
        pending = f", ids given: {', '.join(group.pending)}" if group.pending else ""
        return f"{group.state.value} {group.generation} [{', '.join(members)}]{pending}"

    def _appended(self, records, done):
        names = [self.shown(read_record(*record)) for record in records]
        for name in names:
            self.tell(f"append {name}", 4)

        def committed(error):
            self.tell("committed" if error == ErrorCode.NONE else f"not committed: {error.name}", 4)
            done(error)

        return committed


# --- the stories ------------------------------------------------------------------------------------------------------


def _alone(story, who="ana", **more):
    """A stable group of one member; its id."""
    member_id = story.joins(who, **more).result().member_id
    story.syncs(who, member_id, instance_id=more.get("instance_id"), **{member_id: b"all"})
    return member_id


def _pair(story):
    """A stable group of two members, in generation 2; their ids."""
    ana = _alone(story)
    joining = story.joins("bob")
    story.joins("ana", ana)
    bob = joining.result().member_id
    story.syncs("bob", bob, 2)
    story.syncs("ana", ana, 2, **{ana: b"first", bob: b"second"})
    return ana, bob


def join():
    story = Story(
        "Ana joins alone, first asks for an id, and is assigned everything", group_initial_rebalance_delay_ms=3_000
    )
    ana = story.joins("ana", needs_known_id=True).result().member_id
    joining = story.joins("ana", ana, needs_known_id=True)
    story.run(3)
    assert joining.done
    story.syncs("ana", ana, **{ana: b"all"})
    story.beats("ana", ana)
    return story


def rebalance():
    story = Story("Bob comes to Ana's group: she learns of it by her heartbeat, joins again, and assigns each a part")
    ana = _alone(story)
    joining = story.joins("bob")
    story.run(3)
    story.beats("ana", ana)
    story.joins("ana", ana)
    bob = joining.result().member_id
    story.syncs("bob", bob, 2)
    story.syncs("ana", ana, 2, **{ana: b"first", bob: b"second"})
    return story


def static_member():
    story = Story(
        "A static member restarts: it takes its place over without a rebalance, and its predecessor is fenced"
    )
    before = _alone(story, instance_id="i")
    story.run(2)
    after = story.joins("ana", instance_id="i", can_skip_assignment=True).result().member_id
    story.syncs("ana", after, instance_id="i")
    story.beats("the old ana", before, instance_id="i")
    return story


def leave():
    story = Story("Of two, Bob leaves and Ana gets everything; she leaves, and the group is empty")
    ana, bob = _pair(story)
    story.ask("bob", Leave(((bob, None), ("stranger", None))))
    story.joins("ana", ana)
    story.syncs("ana", ana, 3, **{ana: b"all"})
    story.ask("ana", Leave(((ana, None),)))
    return story


def session_timeout():
    story = Story("Of two, Bob falls silent: his session ends, and Ana's next heartbeat tells her to join again")
    ana, bob = _pair(story)
    for _ in range(2):
        story.run(4)
        story.beats("ana", ana, 2)
    story.run(4)
    story.beats("ana", ana, 2)
    story.joins("ana", ana)
    story.beats("bob", bob, 2)
    return story


def commit():
    story = Story("A commit counts when all in-sync replicas have it; one of an older generation is refused")
    ana = _alone(story)
    story.log.slow = True
    story.commits("ana", ana, 1, 41)
    story.tells_offset()
    story.log.commit()
    story.tells_offset()
    story.commits("ana", ana, 0, 42)
    story.commits("ana", ana, 1, 43)
    story.log.commit(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    story.tells_offset()
    return story


def loading():
    story = Story("A successor loads the group: meanwhile its members are told to wait; then their sessions begin")
    ana = _alone(story)
    story.commits("ana", ana, 1, 41)
    waiting = story.joins("bob")
    story.resigned()
    assert waiting.done
    story.elected(3, held=True)
    story.joins("bob")
    story.syncs("ana", ana)
    story.beats("ana", ana)
    story.commits("ana", ana, 1, 42)
    story.loaded()
    story.tells_offset()
    story.beats("ana", ana)
    story.run(10)
    return story


def resigning():
    story = Story(
        "The coordinator moves while an assignment and a commit are on their way: each who waits hears so once"
    )
    ana = story.joins("ana").result().member_id
    story.log.slow = True
    story.syncs("ana", ana, **{ana: b"all"})
    story.ask("carl", Commit({("t", 0): Offset(7)}), group="h")
    story.resigned()
    story.log.commit()
    story.beats("ana", ana)
    return story


def refused_assignment():
    story = Story("The log does not take an assignment: the members join again, and the next one is taken")
    ana = story.joins("ana").result().member_id
    story.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    story.syncs("ana", ana, **{ana: b"all"})
    story.log.error = ErrorCode.NONE
    story.joins("ana", ana)
    story.syncs("ana", ana, 2, **{ana: b"all"})
    return story


STORIES = {
    "join": join,
    "rebalance": rebalance,
    "static_member": static_member,
    "leave": leave,
    "session_timeout": session_timeout,
    "commit": commit,
    "loading": loading,
    "resigning": resigning,
    "refused_assignment": refused_assignment,
}


def main():
    for name, story in STORIES.items():
        (GOLDEN / f"{name}.txt").write_text(story().text(), encoding="utf-8")


if __name__ == "__main__":
    main()
