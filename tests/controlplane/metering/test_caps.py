"""A maximum that cannot be true: an operator caps it, hours and totals follow, and it does not come back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from controlplane.accounts.models import User
from controlplane.core.errors import Invalid, NotFound
from controlplane.core.models import AuditEntry
from controlplane.metering import services
from controlplane.metering.models import Cap
from controlplane.metering.selectors import usage_hours, usage_total

from .conftest import raised, row

pytestmark = pytest.mark.django_db
START, END = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)


@pytest.fixture
def damaged(instance):
    """An hour of 1,000 bytes, one with a damaged counter, one after it with the next boot."""
    raised(
        [
            row(instance.id, "2026-05-01T09", 1_000, stored=50),
            row(instance.id, "2026-05-01T10", 2**59, stored=60),
            row(instance.id, "2026-05-01T11", 2**59 + 7, stored=70),
            row(instance.id, "2026-05-01T11", 30, boot="b2"),
            row(instance.id, "2026-05-01T11", 40, topic="clicks"),
        ]
    )
    return instance


def cap(instance, **changes):
    about = {"boot": "b1", "topic": "orders", "caps": {"produced_bytes": 1_200}, "reason": "torn file", "actor": "olga"}
    return services.usage_cap(instance_id=instance.id, **(about | changes))


def produced(instance) -> list[int]:
    return [hour.produced_bytes for hour in usage_hours(instance=instance, start=START, end=END)]


def test_hours_and_totals_follow_at_once_and_other_keys_and_counters_stay(damaged):
    assert cap(damaged) == 2
    assert produced(damaged) == [1_000, 200, 70]
    assert usage_total(instance=damaged, start=START, end=END) == (1_270, 0, 70)


def test_it_is_kept_with_its_reason_and_in_the_audit(damaged):
    cap(damaged)
    kept = Cap.objects.get()
    assert (kept.produced_bytes, kept.stored_byte_seconds, kept.reason, kept.set_by) == (
        1_200,
        None,
        "torn file",
        "olga",
    )
    entry = AuditEntry.objects.for_organisation(damaged.organisation).get(action="usage.cap")
    assert (entry.actor, entry.target, entry.detail["produced_bytes"]) == (
        "olga",
        damaged.id,
        {"from": None, "to": 1_200},
    )


def test_a_second_cap_takes_the_place_of_the_first(damaged):
    cap(damaged)
    cap(damaged, caps={"produced_bytes": 900, "stored_byte_seconds": 55})
    assert produced(damaged) == [900, 0, 70]
    assert usage_total(instance=damaged, start=START, end=END)[2] == 55
    assert Cap.objects.count() == 1


def test_a_counter_that_has_no_cap_any_more_is_in_the_audit(damaged):
    cap(damaged)
    cap(damaged, caps={"stored_byte_seconds": 55})
    entry = AuditEntry.objects.for_organisation(damaged.organisation).filter(action="usage.cap").latest("pk")
    assert entry.detail["produced_bytes"] == {"from": 1_200, "to": None}
    assert entry.detail["stored_byte_seconds"] == {"from": None, "to": 55}
    assert "consumed_bytes" not in entry.detail


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"boot": "b9"}, NotFound),
        ({"topic": "nothing"}, NotFound),
        ({"caps": {}}, Invalid),
        ({"caps": {"produced_bytes": -1}}, Invalid),
        ({"caps": {"bytes": 1}}, Invalid),
        ({"reason": " "}, Invalid),
    ],
)
def test_what_names_nothing_changes_nothing(damaged, changes, error):
    with pytest.raises(error):
        cap(damaged, **changes)
    assert produced(damaged)[1] > 2**58
    assert not Cap.objects.exists()


def test_operators_set_it_by_a_command(damaged, capsys):
    words = ("--produced-bytes", "1200", "--reason", "torn file", "--by", "opal@example.com")
    with pytest.raises(CommandError, match="no operator"):
        call_command("usage_cap", damaged.id, "b1", "orders", *words)
    User.objects.create_user("opal@example.com", "a long pass phrase", is_staff=True)
    call_command("usage_cap", damaged.id, "b1", "orders", *words)
    assert Cap.objects.get().set_by == "opal@example.com"
    assert capsys.readouterr().out.startswith("2 rows lowered")
    assert produced(damaged) == [1_000, 200, 70]
    with pytest.raises(CommandError, match="no usage"):
        call_command("usage_cap", damaged.id, "b9", "orders", *words)


class TestByRest:
    URL = "/api/v1/metering/caps"
    BODY: ClassVar = {"boot": "b1", "topic": "orders", "produced_bytes": 1_200, "reason": "torn file"}

    @pytest.fixture
    def operator(self, charlie):
        User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
        return charlie

    def test_an_operator_sets_one_and_reads_which_there_are(self, operator, damaged):
        body = self.BODY | {"instance_id": damaged.id}
        foretold = operator.api.post(f"{self.URL}?dry_run=true", body).json()["changes"]
        assert foretold["produced_bytes"] == [None, 1_200]
        assert not Cap.objects.exists()
        made = operator.api.post(self.URL, body)
        assert made.status_code == 201
        assert made.json().items() >= (body | {"consumed_bytes": None, "set_by": "charlie@example.com"}).items()
        assert produced(damaged) == [1_000, 200, 70]
        assert operator.api.get(self.URL).json() == {"items": [made.json()], "next": None}
        again = operator.api.post(f"{self.URL}?dry_run=true", body | {"produced_bytes": 900}).json()["changes"]
        assert again["produced_bytes"] == [1_200, 900]

    def test_one_that_was_set_again_is_the_newest_page_by_page(self, operator, damaged):
        for topic in ("orders", "clicks", "orders"):
            assert (
                operator.api.post(self.URL, self.BODY | {"instance_id": damaged.id, "topic": topic}).status_code == 201
            )
        first = operator.api.get(f"{self.URL}?limit=1").json()
        second = operator.api.get(self.URL, {"limit": 1, "cursor": first["next"]}).json()
        assert [each["topic"] for each in (*first["items"], *second["items"])] == ["orders", "clicks"]
        assert second["next"] is None

    def test_what_names_nothing_is_refused(self, operator, damaged):
        body = self.BODY | {"instance_id": damaged.id}
        for changes, status in (({"boot": "b9"}, 404), ({"produced_bytes": -1}, 400), ({"bytes": 1}, 400)):
            assert operator.api.post(self.URL, body | changes).status_code == status
        without = {name: value for name, value in body.items() if name != "produced_bytes"}
        assert operator.api.post(self.URL, without).status_code == 400
        assert not Cap.objects.exists()

    def test_nobody_but_operators(self, alice, damaged):
        assert alice.api.get(self.URL).status_code == 403
        assert alice.api.post(self.URL, self.BODY | {"instance_id": damaged.id}).status_code == 403
