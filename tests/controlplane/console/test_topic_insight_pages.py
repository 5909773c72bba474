"""What a topic holds, every configuration of it, its note; and several topics changed at once."""

from __future__ import annotations

import time

import pytest

from controlplane.core.errors import Invalid
from controlplane.core.models import Operation
from controlplane.topic_insights import groups
from controlplane.topics import services as topics
from controlplane.topics.models import TopicNote
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.fakes import FakeGroup

from .conftest import problem_beside, shown_by, text_of

HTMX = {"headers": {"HX-Request": "true"}}


@pytest.fixture
def path(alice, instance):
    for name in ("clicks", "orders", "payments"):
        config = {"retention.ms": "5"} if name == "orders" else {}
        topics.topic_create(
            organisation=alice.organisation, actor="a", instance_id=instance.id, name=name, partitions=2, config=config
        )
    return f"instances/{instance.id}"


@pytest.fixture
def key(instance):
    return instance.id.removeprefix("ins-")


class TestFigures:
    """Behind the topic's page, and a page of its own."""

    def test_the_topics_page_has_it_come_behind(self, at_alice, path):
        page = at_alice.get(f"{path}/topics/orders").content.decode()
        assert f'hx-get="{at_alice.address(path)}/topics/orders/figures' in page

    def test_it_says_what_the_topic_holds_and_what_to_look_at(self, at_alice, path, admin, key):
        now_ms = int(time.time() * 1000)
        admin.groups.logs[f"{key}.orders", 0] = (10, [now_ms] * 1500)
        admin.groups.found[f"{key}.slow"] = FakeGroup({(f"{key}.orders", 0): 4})
        text = text_of(at_alice.get(f"{path}/topics/orders/figures"))
        assert "146 KiB" in text  # 1,500 records of 100 bytes
        assert "439 KiB with all replicas" in text
        assert "0: 2 times an even share" in text
        assert "Retention deleted 6 records before group slow had read them." in text
        assert "slow No members 0" in text
        assert "Not known at this moment: how much is produced and consumed." in text

    def test_a_time_that_is_none_is_said_and_no_error(self, at_alice, path, admin, key):
        for partition, stamp in enumerate((2**63 - 1, -5)):
            admin.groups.logs[f"{key}.orders", partition] = (0, [stamp])
        text = text_of(at_alice.get(f"{path}/topics/orders/figures"))
        assert text.count("at an impossible time") == 3, "of the topic and of each partition"

    def test_more_groups_than_are_looked_at_are_counted_with_a_way_to_them(
        self, at_alice, path, admin, key, monkeypatch
    ):
        monkeypatch.setattr(groups, "MOST_GROUPS", 1)
        for name in ("a", "b", "c"):
            admin.groups.found[f"{key}.{name}"] = FakeGroup({(f"{key}.orders", 0): 4})
        page = at_alice.get(f"{path}/topics/orders/figures")
        assert "2 more groups of the instance not looked at here: all groups" in text_of(page)
        assert f'href="{at_alice.address(path)}/groups"' in page.content.decode()

    def test_the_part_has_no_frame(self, at_alice, path):
        page = at_alice.get(f"{path}/topics/orders/figures", **HTMX)
        assert page.status_code == 200
        assert b"<html" not in page.content

    def test_a_cluster_that_is_away_is_one_calm_sentence_in_the_part(self, at_alice, path, admin):
        admin.away = True
        page = at_alice.get(f"{path}/topics/orders/figures", **HTMX)
        assert page.status_code == 200
        assert "The cluster does not answer." in text_of(page)


class TestConfigs:
    """Every configuration."""

    def test_each_with_its_value_its_default_where_it_comes_from_and_what_it_does(self, at_alice, path):
        text = text_of(at_alice.get(f"{path}/topics/orders/configs"))
        assert "retention.ms The age at which segments are deleted; -1 is never. 5 5 ms set for this topic" in text
        assert "set for this topic 86400000 set by the service" in text
        assert "max.message.bytes The largest batch of records that is taken, compressed. 1048588 1 MiB" in text
        assert "the instance's default the same" in text
        assert "Kafka's default cannot be changed the same" in text

    def test_in_chinese_the_sentence_and_its_bounds_are_translated(self, at_alice, path):
        page = at_alice.get(f"{path}/topics/orders/configs", headers={"Accept-Language": "zh-Hans"})
        assert "In this service" not in text_of(page)
        assert "The age at which" not in text_of(page)


class TestNotes:
    """Written on a page, shown on the topic's, found in the list."""

    def test_it_is_written_and_shown_line_by_line_and_nothing_of_it_is_markup(self, at_alice, path):
        body = {"note": "ask billing\n\n<b>first</b>", "tags": " prod, billing ,prod"}
        page = at_alice.post(f"{path}/topics/orders/note", body, follow=True)
        assert "The note of topic orders was saved." in text_of(page)
        assert "<p>&lt;b&gt;first&lt;/b&gt;</p>" in page.content.decode()
        row = TopicNote.objects.unscoped("a test").get()
        assert row.tags == ["billing", "prod"]
        assert 'value="billing, prod"' in at_alice.get(f"{path}/topics/orders/note").content.decode()

    def test_a_page_that_was_opened_earlier_takes_nothing_back(self, at_alice, path):
        """A colleague adds a tag meanwhile and writes the note anew; here a tag is taken out and one is added."""
        note = f"{path}/topics/orders/note"
        at_alice.post(note, {"note": "ask\nbilling", "tags": "old, prod"})
        shown = shown_by(at_alice.get(note))
        at_alice.post(note, {"note": "ask payments", "tags": "old, pci, prod"} | shown)
        at_alice.post(note, {"note": "ask\r\nbilling", "tags": "eu, prod"} | shown)
        row = TopicNote.objects.unscoped("a test").get()
        assert (row.text, row.tags) == ("ask payments", ["eu", "pci", "prod"])

    def test_a_note_that_is_saved_as_it_is_is_no_change(self, at_alice, path):
        body = {"note": "ask\r\nbilling", "tags": "prod"}
        at_alice.post(f"{path}/topics/orders/note", body)
        page = at_alice.post(f"{path}/topics/orders/note", body, follow=True)
        assert "Nothing was changed." in text_of(page)

    def test_lists_are_narrowed_by_tag_and_searched_by_it(self, at_alice, path):
        at_alice.post(f"{path}/topics/orders/note", {"note": "", "tags": "billing"})
        assert "orders billing" in text_of(at_alice.get(f"{path}/topics?tag=billing", **HTMX))
        assert "clicks" not in text_of(at_alice.get(f"{path}/topics?tag=billing", **HTMX))
        assert "orders billing" in text_of(at_alice.get(f"{path}/topics?q=BILL", **HTMX))
        assert "No topic fits" in text_of(at_alice.get(f"{path}/topics?tag=none", **HTMX))
        page = at_alice.get(f"{path}/topics?tag=billing").content.decode()
        assert 'name="tag" value="billing"' in page, "a search stays within the tag"

    @pytest.mark.parametrize(
        ("body", "field", "said"),
        [
            ({"note": "x" * 2001, "tags": ""}, "note", "Ensure this value has at most 2000 characters"),
            ({"note": "", "tags": "x" * 41}, "tags", "Tag 1: must have at most 40 characters"),
            ({"note": "", "tags": ",".join(map(str, range(11)))}, "tags", "Must be at most 10."),
        ],
    )
    def test_what_is_wrong_stands_beside_its_field(self, at_alice, path, body, field, said):
        page = at_alice.post(f"{path}/topics/orders/note", body)
        assert page.status_code == 422
        assert problem_beside(page, field).startswith(said)

    def test_a_viewer_is_shown_no_form(self, at_viewer, path):
        assert "You may look" in text_of(at_viewer.get(f"{path}/topics/orders/note"))


FORM = {"topics": ["orders", "clicks"], "key_1": "retention.ms", "value_1": "60000"}


class TestSeveral:
    """The same configurations for several topics."""

    def test_a_preview_says_what_would_change_for_each_and_changes_nothing(self, at_alice, path, admin, key):
        admin.refusals[f"{key}.clicks"] = Invalid("retention.ms must be a whole number", code="invalid_config")
        text = text_of(at_alice.post(f"{path}/topic-configs", {**FORM, "preview": ""}))
        assert "orders retention.ms : 5 → 60000" in text
        assert "clicks Refused Retention.ms must be a whole number." in text
        assert "Change 1 topic" in text
        assert admin.configs[f"{key}.orders"] == {"retention.ms": "5"}
        assert not Operation.objects.unscoped("a test").filter(kind="topics.configure").exists()

    def test_one_operation_does_it_and_its_page_says_what_became_of_each(self, at_alice, path, admin, key):
        answer = at_alice.post(f"{path}/topic-configs", {**FORM, "change": ""})
        operation = Operation.objects.unscoped("a test").get(kind="topics.configure")
        assert answer["Location"] == at_alice.address(f"operations/{operation.id}")
        admin.refusals[f"{key}.clicks"] = Invalid("retention.ms must be a whole number", code="invalid_config")
        run_to_the_end(operation.id)
        text = text_of(at_alice.get(f"operations/{operation.id}"))
        assert "Change several topics" in text
        assert "orders Changed retention.ms : 5 → 60000" in text
        assert "clicks Failed Retention.ms must be a whole number." in text
        assert admin.configs[f"{key}.orders"] == {"retention.ms": "60000"}

    @pytest.mark.parametrize(
        ("key_", "value", "unit", "becomes"),
        [
            ("retention.ms", "1.5", "hours", "5400000 1.5 hours"),
            ("retention.ms", "7", "days", "604800000 7 days"),
            ("retention.ms", "60000", "", "60000 1 minute"),
            ("retention.ms", "-1", "days", "-1 no limit"),
            ("max.message.bytes", "0.5", "MiB", "524288 512 KiB"),
        ],
    )
    def test_a_value_may_be_in_a_unit_and_the_preview_says_it_in_both(self, at_alice, path, key_, value, unit, becomes):
        body = {**FORM, "key_1": key_, "value_1": value, "unit_1": unit, "preview": ""}
        assert f"→ {becomes}" in text_of(at_alice.post(f"{path}/topic-configs", body)).replace("\xa0", " ")

    @pytest.mark.parametrize(
        ("change", "field", "said"),
        [
            ({"unit_1": "GiB"}, "unit_1", "This configuration is not in this unit."),
            ({"key_1": "cleanup.policy", "unit_1": "days"}, "unit_1", "This configuration is not in this unit."),
            ({"value_1": "1e9", "unit_1": "days"}, "value_1", "A number is wanted where a unit is chosen."),
            ({"value_1": "0.000001", "unit_1": "minutes"}, "value_1", "That is no whole number of the smallest unit."),
        ],
    )
    def test_a_unit_that_does_not_fit_is_refused_beside_it(self, at_alice, path, change, field, said):
        page = at_alice.post(f"{path}/topic-configs", {**FORM, **change, "preview": ""})
        assert page.status_code == 422
        assert problem_beside(page, field) == said

    def test_more_lines_come_three_at_a_time_with_what_was_typed_and_the_last_of_them_counts(self, at_alice, path):
        page = at_alice.post(f"{path}/topic-configs", {**FORM, "value_1": "nonsense", "more": ""})
        shown = page.content.decode()
        assert page.status_code == 200
        assert 'name="key_6"' in shown
        assert 'name="key_7"' not in shown
        assert 'value="nonsense"' in shown
        assert "What would happen" not in shown
        body = {**FORM, "key_6": "max.message.bytes", "value_6": "2", "unit_6": "MiB", "preview": ""}
        assert "max.message.bytes :" in text_of(at_alice.post(f"{path}/topic-configs", body))
        assert 'name="more"' not in at_alice.post(f"{path}/topic-configs", {**FORM, "key_24": ""}).content.decode()

    def test_an_empty_value_is_back_to_the_default(self, at_alice, path):
        text = text_of(at_alice.post(f"{path}/topic-configs", {**FORM, "value_1": "", "preview": ""}))
        assert "orders retention.ms : 5 → the default" in text
        assert "clicks stays" in text

    @pytest.mark.parametrize(
        ("change", "field", "said"),
        [
            ({"key_1": ""}, "key_1", "This field is required."),
            ({"key_1": "preallocate"}, "key_1", "Select a valid choice."),
            ({"key_2": "retention.ms"}, "key_2", "This one is chosen already."),
            ({"value_2": "5"}, "key_2", "Say which configuration has this value."),
        ],
    )
    def test_what_is_wrong_stands_beside_its_field(self, at_alice, path, change, field, said):
        page = at_alice.post(f"{path}/topic-configs", {**FORM, **change, "preview": ""})
        assert page.status_code == 422
        assert problem_beside(page, field).startswith(said)

    @pytest.mark.parametrize(
        ("topics_", "said"), [([], "Choose at least one topic."), (["missing"], "Select a valid choice. missing")]
    )
    def test_topics_that_are_none_are_said_beside_their_list(self, at_alice, path, topics_, said):
        page = at_alice.post(f"{path}/topic-configs", {**FORM, "topics": topics_, "preview": ""})
        assert page.status_code == 422
        assert said in text_of(page)

    def test_where_all_are_refused_it_is_said_and_nothing_begins(self, at_alice, path, admin, key):
        for name in ("orders", "clicks"):
            admin.refusals[f"{key}.{name}"] = Invalid("retention.ms must be a whole number", code="invalid_config")
        page = at_alice.post(f"{path}/topic-configs", {**FORM, "change": ""})
        assert page.status_code == 422
        assert problem_beside(page, "value_1").startswith("Topic orders: retention.ms must be a whole number.")

    def test_topics_are_narrowed_by_name_and_tag_and_chosen_ones_stay(self, at_alice, path):
        at_alice.post(f"{path}/topics/payments/note", {"note": "", "tags": "billing"})
        page = at_alice.get(f"{path}/topic-configs?tag=billing").content.decode()
        assert 'value="payments"' in page
        assert 'value="clicks"' not in page
        page = at_alice.post(f"{path}/topic-configs?q=pay", {**FORM, "preview": ""})
        assert "orders retention.ms : 5 → 60000" in text_of(page)
        assert "No topic fits" in text_of(at_alice.get(f"{path}/topic-configs?q=nothing"))

    def test_the_one_that_one_comes_from_is_chosen(self, at_alice, path):
        page = at_alice.get(f"{path}/topic-configs?topic=orders").content.decode()
        assert page.count(" checked") == 1

    def test_an_instance_without_topics_has_nothing_to_change(self, at_alice, instance):
        assert "No topic yet" in text_of(at_alice.get(f"instances/{instance.id}/topic-configs"))

    def test_a_viewer_is_shown_no_form_and_changes_nothing(self, at_viewer, path):
        assert "You may look" in text_of(at_viewer.get(f"{path}/topic-configs"))
        assert at_viewer.post(f"{path}/topic-configs", {**FORM, "change": ""}).status_code == 403
