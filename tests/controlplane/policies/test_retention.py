"""Retention is shortened and put back by operations: what is set, what is kept, who is told, whoever dies in between."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.accounts.models import User
from controlplane.core import operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable, NotFound, OperationFailed
from controlplane.core.models import AuditEntry, Operation
from controlplane.kafka.group_door import Member
from controlplane.mail import outbox
from controlplane.mail.models import Mail
from controlplane.policies import evaluation, looking, retention
from controlplane.policies.models import ShortenedTopic
from controlplane.quotas.figures import figures_keep
from controlplane.topics import services as topics
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.fakes import FakeGroup, ManualClock

from .conftest import DAY_MS, DAY_S, REASON

SHORTER = str(int(6.3 * DAY_MS))


class Killed(BaseException):
    """SIGKILL."""


@pytest.fixture
def full(world):
    """Its policy shortens, and the disk has reached the level; one record is older than a first step lets it be."""
    world.topic("orders", [6.5 * DAY_S, 60])
    world.set("retention")
    world.fills(80)
    return world


# --- shortening -------------------------------------------------------------------------------------------------------


def test_at_the_level_retention_becomes_shorter_and_what_was_is_kept(full):
    done = full.act()
    assert (done.kind, done.state, done.actor) == ("policies.shorten", "succeeded", "system")
    assert full.retention("orders") == SHORTER
    (shown,) = full.shown()["shortened_topics"]
    assert {name: shown[name] for name in ("topic", "own_retention_ms", "retention_before_ms", "retention_ms")} == {
        "topic": "orders",
        "own_retention_ms": None,
        "retention_before_ms": 7 * DAY_MS,
        "retention_ms": int(SHORTER),
    }


def test_below_the_level_nothing_happens(full):
    full.fills(74.9)
    assert full.look() == []


def test_no_second_step_before_the_first_has_had_its_effect(full):
    full.act()
    assert full.look() == []
    full.later(minutes=6)  # a broker may have looked just before the setting came
    assert full.look() == []
    full.later(minutes=2)
    assert full.act().state == "succeeded"
    assert full.retention("orders") == str(int(SHORTER) * 90 // 100)
    assert full.shortened()["orders"].before_ms == 7 * DAY_MS


def test_a_topics_own_setting_is_shortened_shown_and_put_back(full):
    full.topic("logs", [6.5 * DAY_S], retention_ms=str(10 * DAY_MS))
    full.act()
    assert full.retention("logs") == str(9 * DAY_MS)
    shown = {each["topic"]: each for each in full.shown()["shortened_topics"]}
    assert (shown["logs"]["own_retention_ms"], shown["orders"]["own_retention_ms"]) == (10 * DAY_MS, None)
    full.later(minutes=8)
    full.fills(50)
    assert full.act().kind == "policies.put_back"
    assert (full.retention("logs"), full.retention("orders")) == (str(10 * DAY_MS), None)
    assert full.shown()["shortened_topics"] == []


def test_what_keeps_everything_and_what_compacts_stays(full):
    full.topic("forever", [30 * DAY_S], retention_ms="-1")
    full.topic("table", [30 * DAY_S], cleanup_policy="compact")
    full.act()
    assert (full.retention("forever"), full.retention("table")) == ("-1", None)


def test_the_audit_of_the_instance_is_the_services_own(full):
    full.admin.create(f"{full.key}.__sluice_audit", partitions=1, replication_factor=1, config={})
    full.act()
    assert set(full.shortened()) == {"orders"}


def test_a_topic_without_a_leader_is_left_alone(full):
    full.topic("away", [6.5 * DAY_S])
    full.admin.placement._put((f"{full.key}.away", 0), leader=None)
    full.act()
    assert set(full.shortened()) == {"orders"}


def test_at_the_floor_it_says_that_it_can_do_nothing_and_waits(full):
    full.set("retention", floor_minutes=1800)
    full.admin.groups.logs[f"{full.key}.orders", 0] = (0, [int(1000 * SYSTEM_CLOCK.now().timestamp())])
    failed = full.act()
    assert (failed.state, full.retention("orders")) == ("failed", None)
    assert "younger than the floor" in full.shown()["problem"]
    full.later(minutes=29)
    assert full.look() == []
    full.later(minutes=2)
    full.admin.groups.logs[f"{full.key}.orders", 0] = (0, [0])
    assert full.act().state == "succeeded"
    assert full.shown()["problem"] is None


def test_when_the_disk_empties_by_itself_there_is_no_problem_any_more(full):
    full.admin.delete([f"{full.key}.orders"])
    assert full.act().state == "failed"
    assert full.shown()["problem"] is not None
    full.later(minutes=31)
    full.fills(None)
    full.look()
    assert full.shown()["problem"] is not None
    full.fills(40)
    assert full.look() == []
    assert full.shown()["problem"] is None


# --- who loses what ---------------------------------------------------------------------------------------------------


def test_what_groups_lose_is_in_the_operation_the_timeline_and_on_record(full, alice):
    full.group("billing", orders=0)
    done = full.act()
    assert done.result["losses"] == [{"group": "billing", "topic": "orders", "records": 1, "size_bytes": 0}]
    assert "of which groups have not read 1: billing (orders: 1)" in done.result["said"]
    events = alice.api.get(f"/api/v1/instances/{full.instance.id}/events").json()["items"]
    told = next(each for each in events if each["kind"] == "operation.succeeded" and each["object"] == done.pk)
    assert "billing (orders: 1)" in told["detail"]


def test_a_policy_that_spares_never_shortens_past_unread_records(full):
    full.topic("logs", [6.4 * DAY_S, 60])
    full.group("billing", orders=0)
    full.set("retention", spare_unread=True)
    done = full.act()
    assert (full.retention("orders"), full.retention("logs")) == (None, SHORTER)
    assert done.result["spared"] == ["orders"]
    assert done.result["losses"] == []


def test_of_an_assigned_partition_without_a_committed_offset_all_is_unread(full):
    """Its group is new, and reads from the start."""
    full.topic("logs", [6.4 * DAY_S, 60])
    member = Member("m-1", "client", "10.0.0.1", (("orders", 0),))
    full.admin.groups.found[f"{full.key}.billing"] = FakeGroup({}, [member])
    full.set("retention", spare_unread=True)
    done = full.act()
    assert (full.retention("orders"), done.result["spared"]) == (None, ["orders"])


def test_another_tenants_groups_and_topics_are_not_looked_at(full):
    full.admin.create("k3v9x2qa.orders", partitions=1, replication_factor=1, config={})
    full.admin.groups.logs["k3v9x2qa.orders", 0] = (0, [0])
    full.admin.groups.found["k3v9x2qa.theirs"] = FakeGroup({("k3v9x2qa.orders", 0): 0})
    done = full.act()
    assert done.result["losses"] == []
    assert "retention.ms" not in full.admin.configs["k3v9x2qa.orders"]


# --- put back ---------------------------------------------------------------------------------------------------------


def test_switched_off_it_is_put_back_at_once(full):
    full.act()
    answer = full.set("none")
    assert answer["operation_id"] is not None
    assert run_to_the_end(answer["operation_id"], full.clock).state == "succeeded"
    assert full.retention("orders") is None
    assert full.shortened() == {}


def test_put_back_is_what_the_tenant_has_set_meanwhile(full):
    """Nothing: it stays."""
    full.act()
    full.admin.configs[f"{full.key}.orders"]["retention.ms"] = "999999"
    run_to_the_end(full.set("none")["operation_id"], full.clock)
    assert full.retention("orders") == "999999"
    assert full.shortened() == {}


def test_what_the_tenant_has_set_meanwhile_is_what_the_next_step_keeps(full):
    full.act()
    full.admin.configs[f"{full.key}.orders"]["retention.ms"] = str(20 * DAY_MS)
    full.later(minutes=8)
    full.act()
    row = full.shortened()["orders"]
    assert (row.own_ms, row.before_ms) == (20 * DAY_MS, 20 * DAY_MS)
    assert int(full.retention("orders")) == row.now_ms < 20 * DAY_MS


@pytest.mark.parametrize(
    ("members", "is_put_back"),
    [
        ({"floor_minutes": 61}, True),
        ({"spare_unread": True}, True),
        ({"floor_minutes": 1}, False),
        ({"level_percent": 90}, False),
    ],
)
def test_a_policy_that_shortens_less_puts_back_first(full, members, is_put_back):
    full.act()
    assert (full.set("retention", **members)["operation_id"] is not None) is is_put_back


def test_a_topic_that_was_deleted_is_forgotten(full):
    full.act()
    full.admin.delete([f"{full.key}.orders"])
    run_to_the_end(full.set("none")["operation_id"], full.clock)
    assert full.shortened() == {}


def test_a_topic_that_a_broker_does_not_know_yet_is_not_taken_for_deleted(full, monkeypatch):
    def unknown(_name):
        raise NotFound("no such topic")

    full.act()
    back = full.set("none")["operation_id"]
    with monkeypatch.context() as patch:
        patch.setattr(full.admin, "config", unknown)
        operations.run(back, clock=full.clock)
    assert set(full.shortened()) == {"orders"}
    assert run_to_the_end(back, full.clock).state == "succeeded"
    assert full.retention("orders") is None


def test_switching_off_while_it_shortens_stops_it_and_puts_all_back(full):
    """Between two topics."""
    full.topic("logs", [6.5 * DAY_S])
    (begun,) = full.look()
    back = []

    def switched_off(_name, _changes):
        full.admin.before_setting = lambda _name, _changes: None
        full.set("none")
        back.append(full.operations().get(kind="policies.put_back").pk)

    full.admin.before_setting = switched_off
    assert run_to_the_end(begun.pk, full.clock).state == "succeeded"
    assert set(full.shortened()) == {"logs"}
    assert run_to_the_end(back[0], full.clock).state == "succeeded"
    assert (full.retention("orders"), full.retention("logs"), full.shortened()) == (None, None, {})


def test_a_topic_that_was_made_again_has_nothing_of_the_one_before(full):
    """It was deleted by Kafka's own protocol, and has by chance what the policy had set for the other."""
    full.topic("orders.old", [60], retention_ms=str(10 * DAY_MS))
    full.act()
    full.admin.delete([f"{full.key}.orders"])
    full.topic("orders", [60], retention_ms=SHORTER)
    run_to_the_end(full.set("none")["operation_id"], full.clock)
    assert (full.retention("orders"), full.shortened()) == (SHORTER, {})


def test_the_next_step_begins_with_what_the_topic_has_that_was_made_again(full):
    full.act()
    full.admin.delete([f"{full.key}.orders"])
    full.topic("orders", [6.2 * DAY_S, 60], retention_ms=SHORTER)
    full.later(minutes=8)
    full.act()
    row = full.shortened()["orders"]
    assert (row.own_ms, row.before_ms) == (int(SHORTER), int(SHORTER))


def test_deleting_a_topic_forgets_what_it_had(full):
    full.act()
    topics.topic_delete(organisation=full.instance.organisation, actor="a", instance_id=full.instance.id, name="orders")
    assert full.shortened() == {}


def test_a_topic_of_a_cluster_without_ids_is_known_by_its_name(full):
    full.act()
    ShortenedTopic.objects.unscoped(REASON).update(topic_id="")
    run_to_the_end(full.set("none")["operation_id"], full.clock)
    assert full.retention("orders") is None


def test_what_could_not_be_put_back_for_a_new_policy_is_tried_again(full):
    """The disk is as full as before: for room there would be nothing to do."""
    full.act()
    full.fills(70)
    back = full.set("retention", floor_minutes=1800)["operation_id"]
    full.admin.away = True
    assert run_to_the_end(back, full.clock).state == "failed"
    full.admin.away = False
    full.later(minutes=8)
    again = full.act()
    assert (again.kind, again.state, full.retention("orders")) == ("policies.put_back", "succeeded", None)
    assert not full.policy().to_put_back


def test_putting_back_because_there_is_room_is_not_taken_for_that_of_a_new_policy(full):
    full.act()
    full.later(minutes=8)
    full.fills(50)
    (for_room,) = full.look()
    assert for_room.arguments["for_room"]
    full.set("retention", floor_minutes=1800)
    back = full.operations().filter(kind="policies.put_back").exclude(pk=for_room.pk).get().pk
    assert run_to_the_end(for_room.pk, full.clock).result["said"] == retention.ANOTHER
    run_to_the_end(back, full.clock)
    assert full.retention("orders") is None


def test_what_an_owner_sets_just_before_a_topic_is_put_back_stays(full, monkeypatch):
    full.topic("logs", [6.5 * DAY_S])
    full.act()
    real = retention.topics.config_set

    def set_meanwhile(*arguments, **members):
        real(*arguments, **members)
        full.admin.configs[f"{full.key}.orders"]["retention.ms"] = "999999"

    back = full.set("none")["operation_id"]
    monkeypatch.setattr(retention.topics, "config_set", set_meanwhile)
    run_to_the_end(back, full.clock)
    assert (full.retention("logs"), full.retention("orders")) == (None, "999999")


# --- figures that are not of now --------------------------------------------------------------------------------------


def test_without_a_master_nothing_is_decided(full):
    full.fills(None)
    assert full.look() == []


def test_last_figures_are_for_pages_and_not_for_policies(full):
    figures_keep()
    full.fills(None)
    assert full.look() == []


@pytest.mark.parametrize("stale", ["a broker is silent", "the master is new", "the master is away"])
def test_figures_that_have_become_doubtful_since_delete_nothing(full, stale):
    (begun,) = full.look()
    if stale == "a broker is silent":
        full.master.broker_rows[1]["reporting"] = False
    elif stale == "the master is new":
        full.fills(80, learning=True)
    else:
        full.fills(None)
    failed = run_to_the_end(begun.pk, full.clock)
    assert (failed.state, failed.error_code) == ("failed", "master_unavailable")
    assert full.retention("orders") is None


def test_a_broker_that_is_dead_stores_what_it_stored(full, brokers):
    brokers.kill(2)
    full.master.broker_rows = [{"broker": 1, "reporting": True}, {"broker": 3, "reporting": True}]
    assert full.act().state == "succeeded"


def test_below_the_level_again_nothing_is_shortened(full):
    (begun,) = full.look()
    full.fills(60)
    done = run_to_the_end(begun.pk, full.clock)
    assert (done.state, full.retention("orders")) == ("succeeded", None)
    assert done.result["said"] == retention.NOT_NEEDED


def test_a_broker_that_answers_nothing_deletes_nothing_and_the_next_look_tries_again(full):
    (begun,) = full.look()
    full.admin.away = True
    failed = run_to_the_end(begun.pk, full.clock)
    assert (failed.state, failed.error_code) == ("failed", "cluster_unavailable")
    full.admin.away = False
    assert full.retention("orders") is None
    full.later(minutes=5)
    assert full.act().state == "succeeded"


def test_where_coordinators_do_not_answer_nobody_could_say_who_loses_what(full, monkeypatch):
    def away(_owned):
        raise ClusterUnavailable("a coordinator does not answer")

    monkeypatch.setattr(full.admin.groups, "listed", away)
    assert full.act().state == "failed"
    assert full.retention("orders") is None


# --- workers ----------------------------------------------------------------------------------------------------------


def test_two_looks_at_once_begin_one_operation(full):
    assert len(full.look()) == 1
    assert full.look() == []
    assert full.operations().count() == 1


def test_the_second_of_two_workers_that_have_read_the_same_begins_nothing(full, monkeypatch):
    """It has decided, and comes to the lock when the first is done."""
    real, late = evaluation.act_begin, []

    def both(**asked):
        late.append(asked)
        return real(**asked)

    monkeypatch.setattr(evaluation, "act_begin", both)
    full.look()
    assert real(**late[0]) is None


def test_one_wrong_policy_keeps_no_other_from_being_looked_at(full, monkeypatch):
    def broken(*_arguments, **_members):
        raise ValueError("broken")

    monkeypatch.setattr(evaluation, "decide", broken)
    assert full.look() == []


@pytest.mark.parametrize("where", ["before it asks", "after it has asked"])
def test_a_worker_that_dies_at_a_topic_leaves_what_another_one_finishes(full, monkeypatch, where):
    full.topic("logs", [6.5 * DAY_S], retention_ms=str(10 * DAY_MS))
    (begun,) = full.look()
    real, died = retention.topics.config_set, []

    def dies(*arguments, **members):
        if where == "after it has asked":
            real(*arguments, **members)
        if not died:
            died.append(arguments)
            raise Killed
        if where == "before it asks":
            real(*arguments, **members)

    monkeypatch.setattr(retention.topics, "config_set", dies)
    with pytest.raises(Killed):
        run_to_the_end(begun.pk, full.clock)
    monkeypatch.setattr(retention.topics, "config_set", real)
    full.later(minutes=5)  # its lease
    done = run_to_the_end(begun.pk, full.clock)
    assert (done.state, done.result["shortened"]) == ("succeeded", 2)
    assert (full.retention("orders"), full.retention("logs")) == (SHORTER, str(9 * DAY_MS))
    kept = {name: (row.own_ms, row.before_ms, row.next_ms) for name, row in full.shortened().items()}
    assert kept == {"orders": (None, 7 * DAY_MS, None), "logs": (10 * DAY_MS, 10 * DAY_MS, None)}
    run_to_the_end(full.set("none")["operation_id"], full.clock)
    assert (full.retention("orders"), full.retention("logs")) == (None, str(10 * DAY_MS))


def test_two_workers_at_once_take_no_setting_of_the_policy_for_the_owners(full, monkeypatch):
    """The lease of the first has run out between two topics; the second does all, and then the first goes on."""
    full.topic("logs", [6.5 * DAY_S])
    full.act()
    full.later(minutes=8)
    (begun,) = full.look()
    operation = Operation.objects.unscoped(REASON).get(pk=begun.pk)
    operation.result = retention.find_out(operation).result
    real, was_there = retention.topics.config_set, []

    def both(*arguments, **members):
        real(*arguments, **members)
        if not was_there:
            was_there.append(arguments)
            retention.shorten(operation)

    monkeypatch.setattr(retention.topics, "config_set", both)
    assert retention.shorten(operation).result["shortened"] == 2
    assert {name: row.own_ms for name, row in full.shortened().items()} == {"orders": None, "logs": None}
    assert {row.before_ms for row in full.shortened().values()} == {7 * DAY_MS}
    monkeypatch.setattr(retention.topics, "config_set", real)
    Operation.objects.unscoped(REASON).filter(pk=begun.pk).update(state="succeeded")
    run_to_the_end(full.set("none")["operation_id"], full.clock)
    assert (full.retention("orders"), full.retention("logs")) == (None, None)


def test_a_long_step_returns_before_its_lease_ends_and_goes_on_where_it_was(full, monkeypatch):
    full.topic("logs", [6.5 * DAY_S])
    (begun,) = full.look()
    with monkeypatch.context() as patch:
        operation = Operation.objects.unscoped(REASON).get(pk=begun.pk)
        operation.result = retention.find_out(operation).result
        patch.setattr(looking.Deadline, "is_over", property(lambda _self: bool(full.shortened())))
        part = retention.shorten(operation)
        assert (part.note, len(full.shortened())) == ("1 of 2 topics", 1)
        assert retention.shorten(operation).note == "1 of 2 topics"  # it is looked at again, and nothing is asked
    assert retention.shorten(operation).result["shortened"] == 2


def test_putting_back_goes_on_where_it_was_and_says_how_many_in_all(full, monkeypatch):
    full.topic("logs", [6.5 * DAY_S])
    full.act()
    back = full.set("none")["operation_id"]
    looked = []

    def every_second(deadline):
        looked.append(deadline)
        return looked.count(deadline) > 1

    monkeypatch.setattr(looking.Deadline, "is_over", property(every_second))
    done = run_to_the_end(back, full.clock)
    assert (done.state, done.result["said"]) == ("succeeded", "retention is as it was before (topics: 2)")
    assert (full.retention("orders"), full.retention("logs"), full.shortened()) == (None, None, {})


def test_finding_out_may_not_take_longer_than_half_a_lease(full, monkeypatch):
    """Beyond its lease another worker would begin it anew, for ever."""
    (begun,) = full.look()
    monkeypatch.setattr(looking, "LONGEST_PART", timedelta(0))
    failed = run_to_the_end(begun.pk, full.clock)
    assert (failed.state, failed.error_code, failed.attempts) == ("failed", "cluster_unavailable", 5)
    assert looking.part_of_lease() <= timedelta(seconds=10)


def test_a_step_of_an_operation_that_never_was_finished_is_put_back_all_the_same(full):
    """The cluster has done it, and the answer was lost for good."""
    row = ShortenedTopic(
        organisation=full.instance.organisation, instance=full.instance, topic="orders", own_ms=None,
        before_ms=7 * DAY_MS, next_ms=int(SHORTER), since=SYSTEM_CLOCK.now(),
    )  # fmt: skip
    row.save(force_insert=True)
    full.admin.configs[f"{full.key}.orders"]["retention.ms"] = SHORTER
    run_to_the_end(full.set("none")["operation_id"], full.clock)
    assert full.retention("orders") is None


def test_a_plan_that_is_too_old_is_thrown_away(full):
    """Killed between deciding and acting, and nobody was there for a quarter of an hour: groups may be elsewhere."""
    (begun,) = full.look()
    operation = Operation.objects.unscoped(REASON).get(pk=begun.pk)
    found_at = SYSTEM_CLOCK.now() - retention.HOLDS - timedelta(seconds=1)
    operation.result = {**retention.find_out(operation).result, "found_at": found_at.isoformat()}
    with pytest.raises(OperationFailed) as refused:
        retention.shorten(operation)
    assert refused.value.code == "policy_too_late"
    assert full.retention("orders") is None


def test_a_topic_that_its_owner_changes_between_deciding_and_acting_is_left_alone(full):
    (begun,) = full.look()
    operation = Operation.objects.unscoped(REASON).get(pk=begun.pk)
    operation.result = retention.find_out(operation).result
    full.admin.configs[f"{full.key}.orders"]["retention.ms"] = str(3 * DAY_MS)
    assert retention.shorten(operation).result == {"shortened": 0, "topics": {}}
    assert (full.retention("orders"), full.shortened()) == (str(3 * DAY_MS), {})


def test_a_topic_that_its_owner_changes_while_others_are_shortened_is_left_alone(full):
    full.topic("a-first-one", [6.5 * DAY_S])
    key = f"{full.key}.orders"

    def changed(_name, _changes):
        full.admin.configs[key]["retention.ms"] = str(3 * DAY_MS)

    full.admin.before_setting = changed
    assert full.act().result["shortened"] == 1
    assert full.retention("orders") == str(3 * DAY_MS)


def test_of_another_policy_meanwhile_nothing_is_done(full):
    (begun,) = full.look()
    full.set("none")
    done = run_to_the_end(begun.pk, full.clock)
    assert (done.state, done.result["said"], full.retention("orders")) == ("succeeded", retention.ANOTHER, None)


def shortened_entries(world):
    rows = AuditEntry.objects.for_organisation(world.instance.organisation).filter(action="instance.policy.shorten")
    return [entry.detail["names"] for entry in rows]


def test_what_was_shortened_before_another_policy_came_is_on_record(full):
    full.topic("logs", [6.5 * DAY_S])

    def switched_off(_name, _changes):
        full.admin.before_setting = lambda _name, _changes: None
        full.set("retention", level_percent=70)

    full.admin.before_setting = switched_off
    done = full.act()
    assert (done.result["shortened"], done.result["shortened_topics"]) == (1, ["logs"])
    assert done.result["said"] == f"stopped after 1 of 2 topics: {retention.ANOTHER}"
    assert shortened_entries(full) == [["logs"]]


# --- owners are told --------------------------------------------------------------------------------------------------


@pytest.fixture
def told(full, mails):
    """Owners whose addresses are confirmed."""
    User.objects.update(email_verified_at=timezone.now())
    return full


def subjects(server):
    clock = ManualClock()
    for clock.time in Mail.objects.filter(state="waiting").order_by("created_at").values_list("created_at", flat=True):
        outbox.send_due(clock=clock)
    return [mail["Subject"] for mail in server.mails]


def test_owners_are_told_who_loses_what(told, mails):
    told.group("billing", orders=0)
    told.act()
    (subject,) = subjects(mails)
    assert subject == f"Retention of instance events ({told.instance.id}) was shortened: groups lose unread records"
    text = mails.mails[0].get_content()
    assert "billing: 1 records of orders" in text
    assert "used to 75 % or more" in text


def test_what_was_shortened_before_brokers_were_away_is_on_record_and_told(told, mails):
    told.topic("logs", [6.5 * DAY_S])

    def away(name, _changes):
        if name.endswith("orders"):
            raise ClusterUnavailable("away")

    told.admin.before_setting = away
    failed = told.act()
    assert (failed.state, failed.result["shortened_topics"]) == ("failed", ["logs", "orders"])
    assert shortened_entries(told) == [["logs", "orders"]]  # of the second the answer is missing
    (subject,) = subjects(mails)
    assert "was shortened" in subject
    assert "topics: 2: logs, orders" in mails.mails[0].get_content().replace("\n", " ")
    assert told.policy().acts_next_at >= SYSTEM_CLOCK.now() + timedelta(minutes=6)


def test_names_stand_in_no_mail_to_an_address_that_was_not_confirmed(told, mails):
    User.objects.update(email_verified_at=None)
    told.group("billing", orders=0)
    told.act()
    subjects(mails)
    (mail,) = mails.mails
    for name in ("billing", "orders", "events"):
        assert name not in mail["Subject"] + mail.get_content().replace(f"instances/{told.instance.id}", "")


def test_step_by_step_they_are_told_once_a_day(told, mails):
    for _ in range(4):
        told.act()
        told.later(minutes=8)
    assert len(subjects(mails)) == 1


def test_a_step_that_is_repeated_tells_nobody_again(told, mails):
    done = told.act()
    retention.tell(done)
    retention.tell(done)
    assert len(subjects(mails)) == 1


def test_that_nothing_could_be_done_is_told_once(told, mails):
    told.set("retention", floor_minutes=1800)
    told.admin.groups.logs[f"{told.key}.orders", 0] = (0, [int(1000 * SYSTEM_CLOCK.now().timestamp())])
    for _ in range(3):
        assert told.act().state == "failed"
        told.later(minutes=31)
    assert subjects(mails) == [f"The storage of instance events ({told.instance.id}) fills up"]


def test_that_a_broker_is_away_for_a_moment_is_told_to_nobody(told, mails):
    told.admin.away = True
    assert told.act().state == "failed"
    assert subjects(mails) == []


def test_operations_are_carried_on_by_offering_them(told):
    """A lost wake-up changes when, never what."""
    (begun,) = told.look()
    assert begun.pk in set(operations.runnable(clock=told.clock).values_list("pk", flat=True))
