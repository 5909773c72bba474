"""Merged reasons by REST: who was behind each, and what would help at which price."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable
from controlplane.instances.models import Instance
from controlplane.quotas.moments import text_of, text_of_ms
from controlplane.remedies import reasons, witnesses
from controlplane.remedies.models import Witness
from controlplane.throttle_rules.services import throttle_rule_create
from quota.contracts.instance import MIB
from tests.controlplane.connections.conftest import rest
from tests.controlplane.quotas.conftest import interval


def asked(person, instance, query=""):
    answer = person.api.get(f"/api/v1/instances/{instance.id}/throttling-reasons{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_what_is_alike_is_one_reason_with_who_was_behind_it(alice, instance, record, ago, hers):
    record(*(interval(instance.id, start=ago(90 - 20 * number)) for number in range(4)))
    hers.say(
        2, talkers=(hers.talker("orders-loader", address="10.0.0.5", produces=9 * MIB),), other_talkers=rest(2, MIB)
    )
    assert witnesses.witnesses_take() == 1
    (found,) = asked(alice, instance)["items"]
    assert (found["times"], found["waited_ms"], found["broker"]) == (4, 48_000, 2)
    assert found["who"] == {
        "broker": 2, "client_id": "orders-loader", "address": "10.0.0.5", "topic": "orders", "unit": "bytes",
        "per_s": 9 * MIB, "all_per_s": 10 * MIB,
    }  # fmt: skip
    assert found["explanation"].startswith("Producing waited 12.0 s on broker 2")
    assert found["explanation"].endswith(
        "Client orders-loader (10.0.0.5) wrote 9.00 of 10.00 MiB/s that were written on broker 2, into orders."
    )
    assert found["remedy"]["kind"] == "leaders"
    assert found["remedy"]["bandwidth_mib_per_s"] is None


def test_where_the_limit_was_used_up_a_size_is_proposed_with_its_price(alice, instance, record, ago):
    Instance.objects.for_organisation(alice.organisation).update(bandwidth_mib_per_s=30)
    used_up = interval(instance.id, start=ago(50), limit=30 * MIB)
    brokers = tuple(each._replace(flow=each.flow * 10) for each in used_up.moment.brokers)
    object.__setattr__(used_up, "moment", used_up.moment._replace(brokers=brokers))
    record(used_up)
    (found,) = asked(alice, instance)["items"]
    remedy = found["remedy"]
    assert (remedy["kind"], remedy["bandwidth_mib_per_s"], remedy["storage_gib"]) == ("bandwidth", 45.0, None)
    outlook = alice.api.patch(f"/api/v1/instances/{instance.id}?dry_run=true", {"bandwidth_mib_per_s": 45}).json()
    price = outlook["price"]
    told = (remedy["per_month_before"], remedy["per_month_after"], remedy["currency"])
    assert told == (price["per_month_before"], price["per_month_after"], price["currency"])
    assert price["per_month_before"] != price["per_month_after"]


def test_full_storage_proposes_storage(alice, instance, record, ago):
    record(interval(instance.id, start=ago(50), blocked="storage"))
    (found,) = asked(alice, instance)["items"]
    assert (found["remedy"]["kind"], found["remedy"]["storage_gib"]) == ("storage", 13.0)


def test_a_reason_that_nobody_was_asked_about_names_nobody(alice, instance, record, ago):
    record(interval(instance.id, start=ago(50)))
    assert asked(alice, instance)["items"][0]["who"] is None


def test_what_was_said_of_another_time_does_not_count(alice, instance, record, ago, hers):
    hers.say(2, talkers=(hers.talker("shop", produces=MIB),))
    record(interval(instance.id, start=ago(90)))
    witnesses.witnesses_take()
    record(interval(instance.id, start=ago(3 * 3600), direction="consume"))
    newest, oldest = asked(alice, instance)["items"]
    assert newest["who"]["client_id"] == "shop"
    assert oldest["who"] is None


def test_a_rules_reason_names_whom_the_rule_is_about(alice, instance, record, ago, hers, monkeypatch):
    rule = throttle_rule_create(
        organisation=alice.organisation, actor="a", instance_id=instance.id,
        kind="client", clients=["modest"], produce_mib_per_s=3,
    )  # fmt: skip
    hers.say(2, talkers=(hers.talker("shop", produces=9 * MIB), hers.talker("modest", produces=MIB)))
    record(interval(instance.id, start=ago(50), rule=rule.id, limit=3 * MIB))
    witnesses.witnesses_take()
    (found,) = asked(alice, instance)["items"]
    assert found["who"]["client_id"] == "modest"
    assert (found["remedy"]["kind"], found["remedy"]["rule_id"]) == ("rule", rule.id)

    def away(**_asked):
        raise ClusterUnavailable("away")

    monkeypatch.setattr(reasons, "throttle_rule_list", away)
    assert asked(alice, instance)["items"][0]["who"] is None, "the rules are not known now"


def test_where_not_all_is_read_the_answer_says_so(alice, instance, record, ago, monkeypatch):
    monkeypatch.setattr(reasons, "INTERVALS", 2)
    record(*(interval(instance.id, start=ago(90 - 20 * number)) for number in range(3)))
    found = asked(alice, instance)
    assert (found["is_whole"], found["items"][0]["times"], found["next"]) == (False, 2, None)


def test_another_instances_reasons_are_not_found(alice, charlie, instance, record, ago):
    record(interval(instance.id, start=ago(50)))
    theirs = charlie.api.get(f"/api/v1/instances/{instance.id}/throttling-reasons")
    nothing = charlie.api.get("/api/v1/instances/ins-00000000/throttling-reasons")
    assert theirs.status_code == nothing.status_code == 404
    assert theirs.content.replace(instance.id.encode(), b"ins-00000000") == nothing.content


# --- asking while it lasts ----------------------------------------------------------------------------------------------------


def test_nobody_is_asked_about_where_nobody_waits_and_once_in_a_while_where_somebody_does(instance, record, ago, hers):
    record(interval(instance.id, start=ago(5), throttled_ms=0), interval(instance.id, start=ago(600)))
    assert witnesses.witnesses_take() == 0
    record(interval(instance.id, start=ago(20)))
    assert [witnesses.witnesses_take() for _ in range(2)] == [1, 0]
    assert len(hers.door.asked_for) == 1
    Witness.objects.update(at=text_of_ms(ago(50)))
    assert witnesses.witnesses_take() == 1


def test_a_cluster_that_is_away_leaves_nothing_and_is_asked_again(instance, record, ago, hers):
    record(interval(instance.id, start=ago(20)))
    hers.door.away = {1, 2}
    assert witnesses.witnesses_take() == 0
    hers.door.away = {1}
    assert witnesses.witnesses_take() == 1
    assert set(Witness.objects.get().document["brokers"]) == {"2"}


def test_in_a_round_those_come_first_that_were_not_asked_about_for_longest(
    instance, record, ago, hers, his, monkeypatch
):
    monkeypatch.setattr(witnesses, "MOST_AT_ONCE", 1)
    Witness.objects.create(instance=hers.instance_id, at=text_of_ms(ago(300)), document={"brokers": {}})
    record(interval(hers.instance_id, start=ago(20)), interval(his.instance_id, start=ago(20)))
    for expected in (his.instance_id, hers.instance_id):
        assert witnesses.witnesses_take() == 1
        assert hers.door.asked_for[-1][0] == expected


def test_what_was_said_is_forgotten_with_the_intervals(instance):
    now = SYSTEM_CLOCK.now()
    for days in (6, 8):
        Witness.objects.create(instance=instance.id, at=text_of(now - timedelta(days=days)), document={"brokers": {}})
    witnesses.witnesses_purge()
    assert Witness.objects.get().at == text_of(now - timedelta(days=6))


@pytest.mark.parametrize("query", ["?from=yesterday", "?from=2026-01-02&to=2026-01-01"])
def test_what_cannot_be_asked_is_refused_by_its_field(alice, instance, query):
    assert alice.api.get(f"/api/v1/instances/{instance.id}/throttling-reasons{query}").status_code == 400
