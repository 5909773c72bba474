"""Notes and tags of topics: what people write about them, kept here because no broker has a place for it.

A note belongs to the topic that it was written about, by the id that the cluster gave it: a topic that is made again with the
name of another begins without. It goes with `topic_delete`. Of topics that clients delete by Kafka's own protocol nothing is
heard here: their notes are shown no more at that moment, and `tidy` removes them some minutes later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import FieldProblem, Invalid
from controlplane.instances import leftovers
from controlplane.topics.models import TopicNote
from quota.contracts.namespace import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from django.db.models import QuerySet

    from controlplane.instances.models import Instance

LONGEST_NOTE = 2000
MOST_TAGS, LONGEST_TAG = 10, 40


@dataclass(frozen=True, slots=True)
class Note:
    """What is written about a topic."""

    text: str = ""
    tags: tuple[str, ...] = ()  # sorted

    @property
    def is_empty(self) -> bool:
        """Whether nothing is."""
        return not self.text and not self.tags


NOTHING = Note()


def tag_problem(tag: object) -> str | None:
    """Why a tag will not do. Pure."""
    if not isinstance(tag, str) or not tag or tag != tag.strip():
        return "must not be empty, nor begin or end with a space"
    if len(tag) > LONGEST_TAG:
        return f"must have at most {LONGEST_TAG} characters"
    if not tag.isprintable() or "," in tag:
        return "must hold printable characters, and no comma"
    return None


def note_text_problem(text: str) -> str | None:
    """Why a note will not do. It may have lines. Pure."""
    if len(text) > LONGEST_NOTE:
        return f"must have at most {LONGEST_NOTE} characters"
    if not all(letter.isprintable() or letter in "\n\t" for letter in text):
        return "must hold printable characters and line ends only"
    return None


def note_changed(before: Note, *, text: str | None, tags: Sequence[str] | None) -> Note:
    """The note afterwards; None: as it is. Raises Invalid naming everything that is wrong. Pure."""
    problems: list[FieldProblem] = []
    if text is not None:
        text = text.replace("\r\n", "\n").strip()
        problem = note_text_problem(text)
        problems += [FieldProblem("note", problem)] if problem else []
    if tags is not None:
        problems += [
            FieldProblem(f"tags.{place}", problem) for place, tag in enumerate(tags) if (problem := tag_problem(tag))
        ]
        if len(set(tags)) > MOST_TAGS:
            problems.append(FieldProblem("tags", f"must be at most {MOST_TAGS}"))
    if problems:
        raise Invalid.fields(problems)
    return Note(before.text if text is None else text, before.tags if tags is None else tuple(sorted(set(tags))))


def notes_of(instance: Instance) -> dict[str, Note]:
    """By topic id, of the topics that have any; those of topics that are gone may be among them."""
    return {row.topic_id: _note(row) for row in _rows(instance)}


def note_of(instance: Instance, topic_id: str) -> Note:
    """Of one topic."""
    row = _rows(instance).filter(topic_id=topic_id).first() if topic_id else None
    return NOTHING if row is None else _note(row)


def note_named(instance: Instance, name: str) -> Note:
    """The newest about a topic of this name: for who cannot ask the cluster which topic that is now."""
    row = _rows(instance).filter(name=name).order_by("-updated_at").first()
    return NOTHING if row is None else _note(row)


@transaction.atomic
def note_write(
    *,
    instance: Instance,
    actor: str,
    name: str,
    topic_id: str,
    text: str | None,
    tags: Sequence[str] | None,
    check: Callable[[], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Change what is said, and keep the rest; of two at once the later one wins, member by member. Raises Invalid.

    `check` is called once nobody else can change the note, and raises where it is not to be written.
    """
    row, _ = (
        _rows(instance)
        .select_for_update()
        .get_or_create(
            instance=instance,
            topic_id=topic_id,
            defaults={"organisation_id": instance.organisation_id, "name": name, "updated_at": clock.now()},
        )
    )
    if check is not None:
        check()
    before = _note(row)
    after = note_changed(before, text=text, tags=tags)
    if after.is_empty:
        row.delete()
    elif after != before:
        row.text, row.tags, row.updated_at = after.text, list(after.tags), clock.now()
        row.save(update_fields=["text", "tags", "updated_at"])
    if after != before:
        detail = audit.changed(
            {"note": before.text, "tags": list(before.tags)}, {"note": after.text, "tags": list(after.tags)}
        )
        audit.record(
            organisation=instance.organisation,
            actor=actor,
            action="topic.note",
            target=f"{instance.id}/{name}",
            detail=detail,
        )


def notes_named(instance: Instance, name: str) -> list[int]:
    """Rows of topics that have this name or had it: to be forgotten once the topic is deleted.

    What no topic can be called has none.
    """
    if topic_name_problem(name):  # PostgreSQL takes no NUL
        return []
    return list(_rows(instance).filter(name=name).values_list("pk", flat=True))


def notes_forget(instance: Instance, rows: Collection[int]) -> None:
    """Of a topic that is deleted. One that was written meanwhile about its successor stays: it is another row."""
    if rows:
        _rows(instance).filter(pk__in=rows).delete()


def tidy(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Remove notes of topics and instances that are gone; how many those were."""
    return leftovers.tidy(TopicNote.objects.unscoped("notes of everyone's topics are tidied"), "notes", clock=clock)


def _rows(instance: Instance) -> QuerySet[TopicNote]:
    return TopicNote.objects.for_organisation(instance.organisation).filter(instance=instance)


def _note(row: TopicNote) -> Note:
    return Note(row.text, tuple(row.tags))
