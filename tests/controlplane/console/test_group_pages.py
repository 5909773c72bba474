"""Groups in the console: who reads, how far behind, moving offsets, deleting, taking a member out."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance
from tests.controlplane.alarms.rows import absence
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.groups.conftest import ALIVE, hers  # noqa: F401  # a fixture
from tests.controlplane.history.test_lag_api import lag_of

from .conftest import problem_beside, text_of


@pytest.fixture
def at(hers):  # noqa: F811
    """Where her instance is."""
    return f"instances/{hers.instance_id}"


@pytest.fixture
def billing(hers):  # noqa: F811
    """The group, as its coordinator has it."""
    return hers.billing


def without_leader(admin, hers, *partitions):  # noqa: F811
    """Its brokers are away."""
    topic = f"{hers.key}.orders"
    admin.topics[topic] = replace(
        admin.topics[topic],
        partitions=tuple(
            replace(each, leader=None) if each.partition in partitions else each
            for each in admin.topics[topic].partitions
        ),
    )


def offsets(group):
    return list(group.offsets.values())


def test_an_empty_list_says_how_a_group_comes_into_being(at_alice, instance):
    assert "No consumer group yet" in text_of(at_alice.get(f"instances/{instance.id}/groups"))


def test_the_list_has_state_members_and_lag(at_alice, at, billing, admin, instance):
    admin.groups.found[f"{instance.id.removeprefix('ins-')}.idle"] = FakeGroup()
    billing.members.append(ALIVE)
    text = text_of(at_alice.get(f"{at}/groups"))
    assert "billing Stable 1 range 2 records" in text
    assert "idle No members 0" in text
    assert "no offset yet" in text
    assert "idle" not in text_of(at_alice.get(f"{at}/groups?q=BILL", HTTP_HX_REQUEST="true"))
    assert "No group matches" in text_of(at_alice.get(f"{at}/groups?q=zzz"))


def test_the_list_is_narrowed_to_a_state_and_keeps_it(at_alice, at, billing, admin, hers):  # noqa: F811
    admin.groups.found[f"{hers.key}.idle"] = FakeGroup()
    billing.members.append(ALIVE)
    whole = at_alice.get(f"{at}/groups").content.decode()
    assert re.findall(r'href="[^"]*[?]state=(\w+)"', whole) == ["Stable", "Empty"], "only of what there is"
    page = at_alice.get(f"{at}/groups?state=Empty")
    assert "idle" in text_of(page)
    assert "billing" not in text_of(page)
    assert '<input type="hidden" name="state" value="Empty">' in page.content.decode()
    assert "No group is in this state now" in text_of(at_alice.get(f"{at}/groups?state=Dead"))
    assert "billing" in text_of(at_alice.get(f"{at}/groups?state=colour")), "what is no state is passed over"


def test_a_name_with_control_characters_is_escaped_and_has_its_page_and_its_deletion(at_alice, at, admin, hers):  # noqa: F811
    admin.groups.found[f"{hers.key}.two\nlines"] = FakeGroup({(f"{hers.key}.orders", 0): 102})
    page = at_alice.get(f"{at}/groups")
    assert r"two\nlines No members" in text_of(page)
    assert f'href="{at_alice.address(at)}/groups/~dHdvCmxpbmVz"' in page.content.decode()
    assert r"two\nlines" in text_of(at_alice.get(f"{at}/groups/~dHdvCmxpbmVz"))
    path = f"{at}/group-deletion/~dHdvCmxpbmVz"
    assert r"Type “two\nlines” to confirm" in text_of(at_alice.get(path))
    assert at_alice.post(path, {"confirmation": r"two\nlines"}).status_code == 302
    assert f"{hers.key}.two\nlines" not in admin.groups.found


def test_one_with_nul_is_in_the_list_and_says_why_it_has_no_page(at_alice, at, admin, hers):  # noqa: F811
    admin.groups.found[f"{hers.key}.billing\0x"] = FakeGroup({(f"{hers.key}.orders", 0): 102})
    text = text_of(at_alice.get(f"{at}/groups"))
    assert r"billing\x00x A name with NUL in it: use Kafka's own tools." in text
    assert at_alice.get(f"{at}/groups/~YmlsbGluZwB4").status_code == 404


def test_a_group_shows_what_is_behind_first(at_alice, at, billing):
    billing.members.append(ALIVE)
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert "Lag 2 records about 200 B Oldest unread record 30" in text
    assert "known after a few seconds" in text
    assert text.index("orders 0 2") < text.index("orders 1 0")
    assert "billing-1 billing-1-uuid 10.0.0.7 orders 0, 1 Remove" in text


def test_what_is_not_known_is_said_with_its_reason(at_alice, at, billing, admin):
    admin.groups.slow = True
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert "Oldest unread record not known" in text
    assert "not known the broker did not send the record in time" in text


def test_a_partition_without_a_leader_makes_the_lag_a_lower_bound(at_alice, at, billing, admin, hers):  # noqa: F811
    without_leader(admin, hers, 0)
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert "Lag 0 records or more: 1 partition is not known" in text
    assert "Oldest unread record not known of 1 partition" in text
    assert "everything is read" not in text
    assert "Caught up not known yet" in text
    assert "0 records 1 partition is not known" in text_of(at_alice.get(f"{at}/groups"))


def test_where_no_partition_has_a_leader_nobody_says_that_no_offset_is_committed(at_alice, at, billing, admin, hers):  # noqa: F811
    without_leader(admin, hers, 0, 1)
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert "Lag not known Oldest" in text
    listed = text_of(at_alice.get(f"{at}/groups"))
    assert "no offset yet" not in listed
    assert "not known" in listed


def test_what_was_never_read_is_not_said_to_be_read(at_alice, at, billing, hers):  # noqa: F811
    billing.members.append(ALIVE)
    del billing.offsets[f"{hers.key}.orders", 0]
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert "Lag 0 records Oldest unread record not known of 1 partition" in text
    assert "Caught up not known yet" in text


def test_an_empty_partition_without_an_offset_hides_nothing(at_alice, at, billing, hers):  # noqa: F811
    billing.members.append(ALIVE)
    del billing.offsets[f"{hers.key}.orders", 0]
    hers.log(0, 7, [])
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert "Oldest unread record none: everything is read" in text
    assert "no offset here" not in text


def test_the_page_looks_again_by_itself_at_its_part(at_alice, at, billing):
    page = at_alice.get(f"{at}/groups/billing")
    assert 'hx-trigger="every 5s"' in page.content.decode()
    part = at_alice.get(f"{at}/groups/billing", HTTP_HX_REQUEST="true").content.decode()
    assert part.startswith('<div id="group-now"')


def test_a_preview_says_what_is_read_again_and_moves_nothing(at_alice, at, billing):
    page = at_alice.post(f"{at}/group-offsets/billing", {"strategy": "earliest", "preview": ""})
    assert "4 records are read again, 0 records are skipped." in text_of(page)
    assert "Move 2 offsets" in text_of(page)
    assert offsets(billing) == [102, 2]


def test_what_a_choice_needs_is_not_called_optional(at_alice, at, billing):
    text = text_of(at_alice.get(f"{at}/group-offsets/billing"))
    assert "Partitions optional" in text
    for label in ("Time, UTC", "Records", "Offset"):
        assert f"{label} optional" not in text


def test_after_the_preview_they_are_moved(at_alice, at, billing, instance):
    page = at_alice.post(
        f"{at}/group-offsets/billing",
        {"strategy": "shift", "shift": "-1", "partitions": "0", "topic": "orders", "move": ""},
    )
    assert page["Location"] == at_alice.address(f"{at}/groups/billing")
    assert offsets(billing) == [101, 2]
    assert "1 offset was moved." in text_of(at_alice.get(f"{at}/groups/billing"))
    entry = AuditEntry.objects.for_organisation(at_alice.organisation).get(action="group.offsets.reset")
    assert (entry.actor, entry.target) == ("alice@example.com", f"{instance.id}/groups/billing")


def test_a_time_is_utc(at_alice, at, billing):
    wanted = {"strategy": "timestamp", "time": "2020-01-01T00:00", "move": ""}
    assert at_alice.post(f"{at}/group-offsets/billing", wanted).status_code == 302
    assert offsets(billing) == [100, 0]


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"strategy": "shift"}, "shift", "This is needed for this choice."),
        ({"strategy": "timestamp", "time": "soon"}, "time", "Enter a valid date/time."),
        ({"strategy": "offset", "offset": "-3"}, "offset", "Ensure this value is greater than or equal to 0."),
        ({"partitions": "one"}, "partitions", "“one” is no partition"),
        ({"partitions": "7-5"}, "partitions", "“7-5” is no range"),
        ({"partitions": "5"}, "partitions", "The topic has no partition 5: it has 2, from 0."),
        ({"topic": "secret"}, "topic", "Select a valid choice."),
    ],
)
def test_what_is_wrong_stands_beside_its_field(at_alice, at, billing, change, field, said):
    page = at_alice.post(
        f"{at}/group-offsets/billing", {"strategy": "earliest", "topic": "orders", "move": "", **change}
    )
    assert page.status_code == 422
    assert problem_beside(page, field).startswith(said)
    assert offsets(billing) == [102, 2]


def test_while_members_live_the_preview_is_shown_and_moving_refused_in_a_sentence(at_alice, at, billing):
    billing.members.append(ALIVE)
    page = text_of(at_alice.post(f"{at}/group-offsets/billing", {"strategy": "earliest", "preview": ""}))
    assert "offsets move only after its consumers are stopped" in page
    assert "4 records are read again" in page
    assert "Move 2 offsets" not in page
    page = at_alice.post(f"{at}/group-offsets/billing", {"strategy": "earliest", "move": ""})
    assert page.status_code == 422
    assert "The group has a member: stop it first" in text_of(page)
    assert offsets(billing) == [102, 2]


def test_a_group_is_deleted_once_its_name_was_typed(at_alice, at, billing, admin):
    assert at_alice.post(f"{at}/group-deletion/billing", {"confirmation": "bill"}).status_code == 422
    assert at_alice.post(f"{at}/group-deletion/billing", {"confirmation": "billing"}).status_code == 302
    assert admin.groups.found == {}
    assert "Group billing was deleted." in text_of(at_alice.get(f"{at}/groups"))


def test_a_member_is_taken_out_once_that_was_confirmed(at_alice, at, billing):
    billing.members.append(ALIVE)
    path = f"{at}/group-members/billing/member/{ALIVE.id}"
    assert "Remove billing-1?" in text_of(at_alice.get(path))
    assert len(billing.members) == 1
    assert at_alice.post(path).status_code == 302
    assert billing.members == []
    assert "This member has left the group." in text_of(at_alice.get(path))
    assert at_alice.post(path).status_code == 404


def test_members_come_a_hundred_at_a_time_beside_the_pages_of_partitions(at_alice, at, billing):
    billing.members += [
        replace(ALIVE, id=f"m-{number:03}", client_id=f"c{number:03}", partitions=()) for number in range(120)
    ]
    body = at_alice.get(f"{at}/groups/billing").content.decode()
    assert body.count('class="sub member-id"') == 100
    assert f'href="{at_alice.address(at)}/groups/billing?members=2"' in body
    body = at_alice.get(f"{at}/groups/billing?members=2", HTTP_HX_REQUEST="true").content.decode()
    assert re.findall(r'member-id">([^<]+)<', body)[0] == "m-100"
    assert body.count('class="sub member-id"') == 20
    assert 'groups/billing?members=2"' in body, "looks again at the page that is read"


def test_a_static_member_is_shown_by_the_name_that_its_consumer_has(at_alice, at, billing):
    billing.members.append(replace(ALIVE, group_instance_id="till-3"))
    assert "static member till-3" in text_of(at_alice.get(f"{at}/groups/billing"))


def test_why_an_age_is_not_known_is_in_the_language_of_the_page(at_alice, at, billing, admin):
    admin.groups.slow = True
    text = text_of(at_alice.get(f"{at}/groups/billing", HTTP_ACCEPT_LANGUAGE="zh-CN"))
    assert "broker 未及时返回该消息" in text
    assert "the broker did not send" not in text


def test_a_viewer_sees_lag_and_no_button(at_viewer, at, billing):
    billing.members.append(ALIVE)
    text = text_of(at_viewer.get(f"{at}/groups/billing"))
    assert "2 records" in text
    for word in ("Move offsets", "Delete…", "Remove"):
        assert word not in text
    assert "You may look, but not change anything here." in text_of(at_viewer.get(f"{at}/group-offsets/billing"))


@pytest.mark.parametrize("name", ["a/b", "<script>", "two\nlines", "ü", ".", "..", "a/../../b", "~x", "x/member/y"])
def test_a_name_that_is_odd_is_shown_and_found(at_alice, at, hers, name):  # noqa: F811
    hers.groups.found[f"{hers.key}.{name}"] = FakeGroup({(f"{hers.key}.orders", 0): 101})
    listed = at_alice.get(f"{at}/groups").content.decode()
    assert "<script>" not in listed.replace("<script src", "")
    address = next(
        part.split('"')[0] for part in listed.split('href="')[1:] if "/groups/" in part and "billing" not in part
    )
    segment = address.partition("/groups/")[2]
    assert "/" not in segment
    assert segment not in (".", ".."), "browsers would look for what lies above"
    page = at_alice.client.get(address.replace("&amp;", "&"))
    assert "3 records" in text_of(page)
    for way in re.findall(r'href="([^"]*/group-(?:offsets|deletion)/[^"]*)"', page.content.decode()):
        assert at_alice.client.get(way).status_code == 200


def test_a_cluster_that_is_away_is_said_calmly(at_alice, at, billing, admin):
    admin.away = True
    for path in ("groups", "groups/billing"):
        page = at_alice.get(f"{at}/{path}")
        assert page.status_code == 503
        assert "The cluster does not answer." in text_of(page)
        assert at_alice.get(f"{at}/{path}", HTTP_HX_REQUEST="true").status_code == 200


@pytest.fixture
def lagged(hers):  # noqa: F811
    """Two minutes of its lag."""
    last = int(SYSTEM_CLOCK.now().timestamp()) // 60 * 60
    lag_of(hers.instance_id, "billing", last - 600, 5, 30, 2**20)
    lag_of(hers.instance_id, "billing", last - 120, 1200, 90, 3 * 2**20, (90, 120))


def test_the_lag_over_time_is_three_charts_with_a_table_behind_each(at_alice, at, lagged):
    answer = at_alice.get(f"{at}/groups/billing")
    assert answer.content.decode().count('<script id="lag_') == 3, "what is drawn comes as data"
    text = text_of(answer)
    assert "3 MiB 3 MiB" in text
    assert "Lag in records as a table" in text
    assert "Lag in bytes as a table" in text
    assert "Age of the oldest unread record as a table" in text
    assert re.search(r"1\s200 1\s200", text)  # maximum, average
    assert "1 min 30 s 1 min 30 s" in text
    assert "30 s" in text


def test_records_that_a_group_reads_and_that_come_are_a_chart_of_two_lines(at_alice, at, lagged):
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert "Records read and written as a table" in text
    assert "1.5/s 2/s" in text


@pytest.mark.parametrize("name", ["1h", "6h", "24h", "7d", "15d", "400d"])
def test_each_range_of_the_lag_is_a_link_and_a_page(at_alice, at, lagged, name):
    body = at_alice.get(f"{at}/groups/billing?range={name}").content.decode()
    assert f'<a href="?range={name}" aria-current="true">' in body


def test_charts_of_lag_have_marks_of_what_happened_to_the_instance(at_alice, at, lagged, hers):  # noqa: F811
    went = SYSTEM_CLOCK.now() - timedelta(minutes=5)
    instances = Instance.objects.unscoped("a test")
    instances.update(created_at=went - timedelta(hours=1))
    absence(instances.get(pk=hers.instance_id), went, went + timedelta(minutes=1))
    body = at_alice.get(f"{at}/groups/billing").content.decode()
    assert body.count("Broker 2 of the cluster went away") >= 2 * 3, "in the data and in the table of each"


def test_a_time_of_lag_that_cannot_be_shown_is_refused_and_the_rest_of_the_page_is_there(at_alice, at, lagged):
    answer = at_alice.get(f"{at}/groups/billing?since=2026-01-02T00:00&until=2026-01-01T00:00")
    assert answer.status_code == 422
    assert "This must be later than the beginning." in text_of(answer)
    assert "data-plot" not in answer.content.decode()
    assert "Members" in text_of(answer)


def test_without_rows_it_says_when_there_will_be_some(at_alice, at):
    assert "Nothing is recorded of this time" in text_of(at_alice.get(f"{at}/groups/billing"))
    assert at_alice.get(f"{at}/groups/billing?range=2h").status_code == 404


def test_the_part_that_polls_draws_no_chart(at_alice, at, lagged):
    part = at_alice.get(f"{at}/groups/billing", HTTP_HX_REQUEST="true").content.decode()
    assert "data-plot" not in part


def test_the_lag_over_time_is_there_when_the_cluster_is_not(at_alice, at, lagged, admin):
    admin.away = True
    answer = at_alice.get(f"{at}/groups/billing")
    assert answer.status_code == 503
    assert "Lag in records as a table" in text_of(answer)


def test_a_group_that_is_gone_shows_its_history_and_says_so(at_alice, at, lagged, hers):  # noqa: F811
    del hers.groups.found[f"{hers.key}.billing"]
    answer = at_alice.get(f"{at}/groups/billing")
    text = text_of(answer)
    assert answer.status_code == 200
    assert "There is no such group now. This is its history." in text
    assert "Lag in records as a table" in text
    assert "Move offsets" not in text
    part = at_alice.get(f"{at}/groups/billing", HTTP_HX_REQUEST="true")
    assert "There is no such group now." in text_of(part)
    assert at_alice.get(f"{at}/groups/never").status_code == 404


def test_a_broker_that_hangs_is_named_and_what_the_others_know_is_shown(at_alice, at, billing, admin, hers):  # noqa: F811
    admin.groups.found[f"{hers.key}.audit"] = FakeGroup()
    admin.groups.silent.add(("127.0.0.1", 2))
    admin.groups.hidden.add(f"{hers.key}.audit")
    page = at_alice.get(f"{at}/groups")
    assert page.status_code == 200
    assert "Broker 2 does not answer: what it knows is missing here." in text_of(page)
    assert "billing No members 0" in text_of(page)
    lag_of(hers.instance_id, "audit", int(SYSTEM_CLOCK.now().timestamp()) - 60, 5, 30)
    assert re.search(r"audit Not known (\S) \1 not known \1", text_of(at_alice.get(f"{at}/groups")))


def test_the_list_can_begin_with_the_furthest_behind_and_says_how_old(at_alice, at, billing, admin, hers):  # noqa: F811
    admin.groups.found[f"{hers.key}.audit"] = FakeGroup()
    lag_of(hers.instance_id, "billing", int(SYSTEM_CLOCK.now().timestamp()) - 60, 2, 90)
    text = text_of(at_alice.get(f"{at}/groups"))
    assert text.index("audit") < text.index("billing")
    assert "2 records 200 B 1 min 30 s" in text
    page = at_alice.get(f"{at}/groups?by=lag")
    text = text_of(page)
    assert text.index("billing") < text.index("audit")
    assert '<input type="hidden" name="by" value="lag">' in page.content.decode()  # a search keeps it


def test_each_partition_says_how_fast_it_is_read(at_alice, at, billing, admin, hers, monkeypatch):  # noqa: F811
    moments = [SYSTEM_CLOCK.now()]  # of both looks, however long a page takes
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: moments[-1])
    hers.log(0, 0, [0.0] * 100)
    billing.offsets = {(f"{hers.key}.orders", 0): 10}
    at_alice.get(f"{at}/groups/billing")
    moments.append(moments[0] + timedelta(seconds=10))
    hers.log(0, 0, [0.0] * 200)
    text = text_of(at_alice.get(f"{at}/groups/billing"))
    assert re.search(r"orders 0 190 .* 10 200 0 a second falls behind: (9\.\d|10) a second are written nobody", text), (
        text
    )


def test_members_of_the_consumer_protocol_are_not_offered_to_be_removed(at_alice, at, billing):
    billing.members += [ALIVE, replace(ALIVE, id="old", client_id="old-one")]
    billing.classic = {"old"}
    page = at_alice.get(f"{at}/groups/billing")
    assert page.content.decode().count("Remove…") == 1
    assert "Remove… old" in text_of(page)
    assert "(KIP-848) cannot be taken out" in text_of(page)
    removal = at_alice.get(f"{at}/group-members/billing/member/{ALIVE.id}")
    assert "(KIP-848) cannot be taken out" in text_of(removal)
    assert "Remove this member" not in text_of(removal)
    assert "Remove this member" in text_of(at_alice.get(f"{at}/group-members/billing/member/old"))


def test_a_topic_without_an_offset_can_be_chosen(at_alice, at, billing, admin, hers):  # noqa: F811
    topic = f"{hers.key}.clicks"
    admin.create(topic, partitions=1, replication_factor=1, config={})
    admin.groups.logs[topic, 0] = (5, [1, 2, 3])
    assert '<option value="clicks">' in at_alice.get(f"{at}/group-offsets/billing").content.decode()
    moved = at_alice.post(f"{at}/group-offsets/billing", {"strategy": "earliest", "topic": "clicks", "move": ""})
    assert moved.status_code == 302
    assert billing.offsets[topic, 0] == 5


def test_a_group_without_offsets_is_given_some(at_alice, at, billing, admin, hers):  # noqa: F811
    admin.groups.found[f"{hers.key}.fresh"] = fresh = FakeGroup()
    page = at_alice.get(f"{at}/group-offsets/fresh")
    assert "All of the group" not in text_of(page)
    refused = at_alice.post(f"{at}/group-offsets/fresh", {"strategy": "latest", "preview": ""})
    assert "Choose a topic: the group has no offset yet." in problem_beside(refused, "topic")
    at_alice.post(f"{at}/group-offsets/fresh", {"strategy": "latest", "topic": "orders", "move": ""})
    assert offsets(fresh) == [104, 2]


def test_a_preview_says_where_no_offset_is_yet_and_what_lies_before(at_alice, at, billing, admin, hers):  # noqa: F811
    """A consumer that begins with the earliest where it has no offset would have read them."""
    admin.groups.found[f"{hers.key}.fresh"] = FakeGroup()
    asked = {"strategy": "latest", "topic": "orders", "preview": ""}
    text = text_of(at_alice.post(f"{at}/group-offsets/fresh", asked))
    assert "2 partitions have no offset yet; 6 records before the new ones will not be read." in text
    assert "orders 0 none 104 no offset yet; 4 records before it" in text
    assert "nothing read twice or skipped" not in text


def test_a_shift_that_is_sent_twice_goes_once_as_far(at_alice, at, billing):
    path, before = f"{at}/group-offsets/billing", offsets(billing)
    sent = {"strategy": "shift", "shift": "-1", "partitions": "0", "topic": "orders"}
    token = str(uuid4())
    for further in (1, 2):  # each preview leads to a move of its own
        preview = at_alice.post(path, sent | {"preview": "", "once": token}).content.decode()
        token = re.search(r'name="once" value="([^"]+)"', preview)[1]
        for _ in range(2):
            page = at_alice.post(path, sent | {"move": "", "once": token}, follow=True)
            assert "1 offset was moved." in text_of(page)
        assert offsets(billing) == [before[0] - further, *before[1:]]


def test_a_group_is_made_before_its_consumers(at_alice, at, billing, admin, hers):  # noqa: F811
    assert "orders" in text_of(at_alice.get(f"{at}/group-new"))
    made = at_alice.post(f"{at}/group-new", {"name": "fresh", "topics": ["orders"]})
    assert made["Location"] == at_alice.address(f"{at}/groups/fresh")
    assert offsets(admin.groups.found[f"{hers.key}.fresh"]) == [104, 2]
    again = at_alice.post(f"{at}/group-new", {"name": "fresh", "topics": ["orders"]})
    assert "There is a group fresh" in problem_beside(again, "name")
    assert "Choose at least one topic." in text_of(at_alice.post(f"{at}/group-new", {"name": "other"}))


def test_the_offsets_of_one_topic_are_deleted_once_its_name_was_typed(at_alice, at, billing, hers):  # noqa: F811
    billing.offsets[f"{hers.key}.clicks", 0] = 7
    path = f"{at}/group-topics/billing/topic/orders"
    assert f"/{path}" in at_alice.get(f"{at}/groups/billing").content.decode()
    assert "forgets where it was in 2 partitions" in text_of(at_alice.get(path))
    assert at_alice.post(path, {"confirmation": "order"}).status_code == 422
    assert len(billing.offsets) == 3
    assert at_alice.post(path, {"confirmation": "orders"}).status_code == 302
    assert billing.offsets == {(f"{hers.key}.clicks", 0): 7}
    assert "no offset in this topic" in text_of(at_alice.get(path))
    last = at_alice.get(f"{at}/group-topics/billing/topic/clicks")
    assert "These are its last offsets" in text_of(last)


def test_while_members_live_they_are_not(at_alice, at, billing):
    billing.members.append(ALIVE)
    path = f"{at}/group-topics/billing/topic/orders"
    assert path not in at_alice.get(f"{at}/groups/billing").content.decode()
    assert at_alice.post(path, {"confirmation": "orders"}).status_code == 422
    assert len(billing.offsets) == 2
