"""Messages of a topic: a page of them, one of them, the live tail, a test message, deleting records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.accounts.scopes import TOPICS
from controlplane.console import contents
from controlplane.console.forms.messages import MessagesForm, RecordsDeletionForm, TestMessageForm
from controlplane.console.once import made_once
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.core.errors import BandwidthUsedUp, Forbidden, Invalid, SluiceError, Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.messages import cursors, downloads, outlook, selectors, services
from controlplane.messages.looking import Direction
from controlplane.messages.selectors import Start, Wanted
from controlplane.schemas.decoding import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from controlplane.accounts.selectors import Caller
    from controlplane.console.contents import Preview
    from controlplane.messages.cutting import Shown
    from controlplane.messages.looking import Position
    from controlplane.messages.selectors import MessagesPage

TAIL_ROWS = 50
EVERY_S = 3
MOST_LIVE = 500
"""Messages that a live page adds; then it stops, so that a forgotten tab neither grows nor reads for ever."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


MOST_LOOKS = 100
"""That a search makes by itself, each of some thousand records: then somebody has to say that it is to go on."""
PAUSE_S = 0.3
"""Between two of them, so that a search takes no more of a web process than a person who clicks."""


@dataclass(frozen=True, slots=True)
class Row:
    """A message in the list."""

    message: Shown
    at: datetime | None
    key: Preview
    value: Preview


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """What the filter in the address takes, the newest on top."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    selectors.check_topic(instance, topic)
    form = MessagesForm({name: request.GET[name] for name in MessagesForm.base_fields if name in request.GET})
    page: MessagesPage | None = None
    away: SluiceError | None = None
    if form.is_valid():
        try:
            page = selectors.messages_page(
                organisation=caller.organisation,
                instance_id=instance.id,
                topic=topic,
                wanted=form.wanted(_position(request), form.limit),
                may_read=caller.may_read_messages,
                or_lake=True,
                whole="download" in request.GET,
            )
        except (Unavailable, BandwidthUsedUp) as error:
            away = error
        except SluiceError as error:
            form.refuse(error)
    if "download" in request.GET and page is not None:
        return _page_download(page, topic, request.GET["download"])
    ways = _ways(page)
    again_s = away.retry_after_s if isinstance(away, BandwidthUsedUp) else None
    context = {
        **_frame(instance, topic),
        "again_s": again_s,
        "form": form,
        "filtered": any(value for name, value in form.data.items() if name != "rows"),
        "further": "cursor" in request.GET,
        "away": away,
        "page": page,
        "rows": _rows(page),
        "live": "live" in request.GET,
        **ways,
        **(_searching(form, page, looks=1, records=page.records, found=len(page.messages)) if page else {}),
    }
    if context.get("searching"):  # the row that searches has the way on
        context["newer" if context["is_newer"] else "older"] = None
    status = away.http_status if away else 422 if form.errors else 200
    answer = render(request, "console/topic_messages.html", context, status=status)
    if again_s is not None:
        answer["refresh"] = str(again_s)  # without JavaScript, too
    return answer


@require_safe
@tenant_page
def tail(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """What has come since, for the top of the list; 204: nothing. What cannot be read, now or ever, is said there."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    selectors.check_topic(instance, topic)
    filters = ("partition", "key", "key_as", "key_part", "text", "header")
    form = MessagesForm({name: request.GET[name] for name in filters if name in request.GET})
    position = _position(request)
    context: dict[str, Any] = {**_frame(instance, topic), "shown": _number(request.GET.get("shown", ""))}
    asked = {"organisation": caller.organisation, "instance_id": instance.id, "topic": topic}
    if not form.is_valid():
        return _refused_tail(request, context, form)
    wanted = form.wanted(position, TAIL_ROWS)
    if position is None:
        wanted = Wanted(partition=wanted.partition, start=Start.END, filter=wanted.filter)
    try:
        page = selectors.messages_page(**asked, wanted=wanted, may_read=caller.may_read_messages)
    except (Unavailable, BandwidthUsedUp) as error:
        context |= {"away": error, "cursor": cursors.text_of(position) if position else None}
        return render(request, "console/parts/message_tail.html", context)
    except SluiceError as error:
        form.refuse(error)
        return _refused_tail(request, context, form)
    if not page.messages and not page.has_more and position == page.newer:
        return HttpResponse(status=204)
    skipped = _skipped(page)
    context |= {
        "rows": _rows(page),
        "skipped": skipped,
        "shown": context["shown"] + len(page.messages),
        "cursor": cursors.text_of(_end(page) if skipped else page.newer),
    }
    context["is_over"] = context["shown"] >= MOST_LIVE
    return render(request, "console/parts/message_tail.html", context)


def _refused_tail(request: HttpRequest, context: dict[str, Any], form: MessagesForm) -> HttpResponse:
    """What the form says, beside the names of its fields. The page asks no more: it would be refused again."""
    problems = [
        (form.fields[name].label if name in form.fields else "", problem)
        for name, problems in form.errors.items()
        for problem in problems
    ]
    return render(request, "console/parts/message_tail.html", {**context, "problems": problems})


@require_safe
@tenant_page
def search(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """One look more of a search that goes on by itself: what it has found, and a row that goes on, or says why it does not."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    selectors.check_topic(instance, topic)
    form = MessagesForm({name: request.GET[name] for name in MessagesForm.base_fields if name in request.GET})
    position = _position(request)
    if not form.is_valid():
        return HttpResponse(status=204)
    looks, records, found = (_number(request.GET.get(name, "")) for name in ("looks", "records", "found"))
    context: dict[str, Any] = {
        **_frame(instance, topic),
        "looks": looks + 1,
        "records": records,
        "found": found,
        "cursor": cursors.text_of(position) if position else None,
        "is_newer": position is not None and position.direction is Direction.NEWER,
        "pause_s": PAUSE_S,
        "state": "on" if looks < MOST_LOOKS else "stopped",
    }
    if "stop" in request.GET or looks >= MOST_LOOKS:
        return render(request, "console/parts/message_search.html", {**context, "state": "stopped"})
    try:
        page = selectors.messages_page(
            organisation=caller.organisation,
            instance_id=instance.id,
            topic=topic,
            wanted=form.wanted(position, form.limit),
            may_read=caller.may_read_messages,
            or_lake=True,
        )
    except (Unavailable, BandwidthUsedUp) as error:  # it waits, and counts as a look: a search has an end in any case
        context |= {"away": error, "pause_s": getattr(error, "retry_after_s", EVERY_S)}
        return render(request, "console/parts/message_search.html", context)
    further = _searching(form, page, looks=looks + 1, records=records + page.records, found=found + len(page.messages))
    return render(request, "console/parts/message_search.html", {**context, **further, "rows": _rows(page)})


@require_safe
@tenant_page
def shown(
    request: HttpRequest, caller: Caller, instance_id: str, topic: str, partition: int, offset: int
) -> HttpResponse:
    """One message: its key, headers and value as JSON, text and bytes; `?download` is the value itself."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    message = selectors.message_get(
        organisation=caller.organisation,
        instance_id=instance.id,
        topic=topic,
        partition=partition,
        offset=offset,
        may_read=caller.may_read_messages,
        or_lake=True,
    )
    if "download" in request.GET:
        return _download(message, topic)
    context = {
        **_frame(instance, topic),
        "row": _row(message),
        "key": contents.opened(message.key or b""),
        "value": contents.opened(message.value or b""),
        "headers": contents.opened_headers(message.headers),
        "headers_left": max(0, len(message.headers) - contents.MOST_HEADERS),
        "key_decoded": _decoded(message, Part.KEY),
        "value_decoded": _decoded(message, Part.VALUE),
    }
    part = request.htmx  # type: ignore[attr-defined]
    return render(request, "console/parts/message.html" if part else "console/topic_message.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: bool(request.POST.get("tombstone")))
def new(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """Write one message, and say where it is."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    selectors.check_topic(instance, topic)
    form = TestMessageForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            where = made_once(request, caller, form, lambda: _written(caller, instance.id, topic, form))
        except SluiceError as error:
            form.refuse(error)
        else:
            notices.success(request, where)
            return redirect("console:topic_messages", caller.organisation.id, instance.id, topic)
    context = {**_frame(instance, topic), "form": form}
    return render(request, "console/topic_message_new.html", context, status=422 if form.errors else 200)


def _written(caller: Caller, instance_id: str, topic: str, form: TestMessageForm) -> str:
    """Where the message is, in a sentence. Raises SluiceError."""
    written = services.message_produce(**caller.place(instance_id), topic=topic, **form.message())
    return f"The message is at offset {written.offset} of partition {written.partition}."


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: "preview" not in request.POST)
def deletion(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """Say up to where, look at how many go, and delete once the topic's name was typed. For owners."""
    if request.method == "POST" and not caller.may_manage:
        raise Forbidden("only owners of the organisation delete records")
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    selectors.check_topic(instance, topic)
    is_preview = "preview" in request.POST
    form = RecordsDeletionForm(request.POST or None, name=topic, is_preview=is_preview)
    told: outlook.Deleting | None = None
    if request.method == "POST" and form.is_valid():
        asked = {"topic": topic, "before": form.offsets(), "is_owner": caller.may_manage}
        try:
            if is_preview:
                told = outlook.deleting(
                    organisation=caller.organisation,
                    instance_id=instance.id,
                    may_name_groups=caller.limits.covers(TOPICS, changes=False),
                    **asked,
                )
            else:
                gone = services.records_delete(**caller.place(instance.id), **asked)
                notices.success(request, _gone(gone))
                return redirect("console:topic_messages", caller.organisation.id, instance.id, topic)
        except SluiceError as error:
            form.refuse(error)
    losers = () if told is None else told.losers
    context = {
        **_frame(instance, topic),
        "form": form,
        "told": told,
        "losers": losers[: outlook.MOST_LOSERS],
        "more_losers": max(0, len(losers) - outlook.MOST_LOSERS),
    }
    return render(request, "console/topic_records_delete.html", context, status=422 if form.errors else 200)


def _gone(deletions: Sequence[services.Deletion]) -> str:
    if len(deletions) == 1:
        return f"Partition {deletions[0].partition} begins at offset {deletions[0].before_offset} now."
    return f"{sum(each.records for each in deletions)} records of {len(deletions)} partitions were deleted."


def _searching(form: MessagesForm, page: MessagesPage, *, looks: int, records: int, found: int) -> dict[str, Any]:
    """Whether a search goes on by itself: there is a filter, fewer messages than a page holds, and more to look at."""
    following = page.following
    is_filtered = not form.filter().takes_everything
    is_on = is_filtered and following is not None and found < form.limit and not page.unavailable
    return {
        "searching": is_on,
        "state": "on" if is_on and looks < MOST_LOOKS else "over" if following is None else "stopped",
        "cursor": None if following is None else cursors.text_of(following),
        "is_newer": page.direction is Direction.NEWER,
        "looks": looks,
        "records": records,
        "found": found,
        "pause_s": PAUSE_S,
    }


def _frame(instance: Any, topic: str) -> dict[str, Any]:
    return {"instance": instance, "tab": "topics", "topic": topic, "every_s": EVERY_S}


def _position(request: HttpRequest) -> Position | None:
    text = request.GET.get("cursor")
    return cursors.position_of(text) if text else None


def _ways(page: MessagesPage | None) -> dict[str, Any]:
    """Cursors of what lies on both sides; None: nothing does."""
    if page is None:
        return {"older": None, "newer": None, "tail": None}
    onward = None if page.following is None else page.direction  # also where a partition has been left out so far
    older = any(page.older.offsets[each.partition] > each.oldest_offset for each in page.places)
    newer = any(page.newer.offsets[each.partition] < each.end_offset for each in page.places)
    older, newer = older or onward is Direction.OLDER, newer or onward is Direction.NEWER
    return {
        "older": cursors.text_of(page.older) if older else None,
        "newer": cursors.text_of(page.newer) if newer else None,
        "tail": cursors.text_of(page.newer),
    }


def _rows(page: MessagesPage | None) -> list[Row]:
    """The newest first, whichever way the look went."""
    if page is None:
        return []
    rows = [_row(message) for message in page.messages]
    return rows if page.direction is Direction.OLDER else rows[::-1]


def _row(message: Shown) -> Row:
    return Row(
        message,
        _moment(message.timestamp_ms),
        _preview(message, Part.KEY, message.key, message.key_bytes),
        _preview(message, Part.VALUE, message.value, message.value_bytes),
    )


def _preview(message: Shown, part: Part, content: bytes | None, size: int) -> Preview:
    decoded = message.decoded.get(part)
    if decoded is None or decoded.problem is not None:
        return contents.preview(content, max(0, size))
    return contents.Preview(contents.json_preview(decoded.value))


def _decoded(message: Shown, part: Part) -> dict[str, Any] | None:
    """What a schema makes of it; None: there is no schema, or nothing to be read by it."""
    found = message.decoded.get(part)
    if found is None:
        return None
    text = None if found.problem is not None else contents.json_text(found.value)
    return {"problem": found.problem, "tree": contents.tree_of(found.value), "text": text}


def _moment(timestamp_ms: int | None) -> datetime | None:
    """None: it has none, or one of a year that no calendar has."""
    try:
        return None if timestamp_ms is None else _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None


def _skipped(page: MessagesPage) -> int:
    """Offsets that came since and are more than a live page can show."""
    return sum(each.end_offset - each.to_offset for each in page.places) if page.has_more else 0


def _end(page: MessagesPage) -> Position:
    ends = {each.partition: each.end_offset for each in page.places}
    return replace(page.newer, offsets={**page.newer.offsets, **ends})


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


def _page_download(page: MessagesPage, topic: str, form: str) -> HttpResponse:
    """The messages of a page, in its order and whole. What a role may not read is not in them, as it is not on the page."""
    if form not in downloads.FILES:
        raise Invalid.field("download", "must be jsonl or csv")
    return downloads.file_of(page.messages, topic, form)


def _download(message: Shown, topic: str) -> HttpResponse:
    if message.is_masked:
        raise Forbidden("your role may not read messages")
    name = f"{topic}-{message.partition}-{message.offset}.bin"
    return HttpResponse(
        message.value or b"",
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"},
    )
