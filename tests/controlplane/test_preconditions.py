"""Two who change an instance at once: by ``ETag`` and ``If-Match`` the later one is told."""

from __future__ import annotations

import pytest

from controlplane.core.models import AuditEntry, Operation
from controlplane.instances import services
from controlplane.instances.models import Instance, InstanceState

from .conftest import run_to_the_end
from .test_instances_api import URL, problem


@pytest.fixture
def url(instance):
    return f"{URL}/{instance.id}"


def row():
    return Instance.objects.unscoped("a test").get()


def written():
    return [
        list(rows.unscoped("a test").values()) for rows in (Instance.objects, Operation.objects, AuditEntry.objects)
    ]


def test_the_etag_is_the_generation(alice, url):
    assert alice.api.get(url)["ETag"] == f'"{row().generation}"'


def test_of_two_who_change_at_once_one_is_told(alice, bob, url):
    seen = [person.api.get(url)["ETag"] for person in (alice, bob)]
    assert alice.api.patch(url, {"name": "hers"}, HTTP_IF_MATCH=seen[0]).status_code == 202
    before = written()
    for change in ({"name": "his"}, {"bandwidth_mib_per_s": 8}, {"storage_gib": 1}):
        refused = problem(bob.api.patch(url, change, HTTP_IF_MATCH=seen[1]), 412, "precondition_failed")
    assert "get it again" in refused["detail"]
    assert refused["retriable"] is False
    problem(bob.api.delete(url, HTTP_IF_MATCH=seen[1]), 412, "precondition_failed")
    assert written() == before
    assert bob.api.get(url).json()["name"] == "hers"
    assert bob.api.patch(url, {"name": "his"}, HTTP_IF_MATCH=bob.api.get(url)["ETag"]).status_code == 202


def hers():
    Instance.objects.unscoped("a test").update(name="hers", generation=row().generation + 1)


def test_one_who_is_faster_between_the_look_and_the_write_is_seen(alice, url, monkeypatch):
    seen = alice.api.get(url)["ETag"]
    monkeypatch.setattr(services, "_with_config", lambda _instance, changes: hers() or dict(changes))
    problem(alice.api.patch(url, {"name": "his"}, HTTP_IF_MATCH=seen), 412, "precondition_failed")
    assert row().name == "events"  # hers went with the test's own transaction


def test_one_who_is_faster_than_who_deletes_is_seen(alice, url, monkeypatch):
    seen, look = alice.api.get(url)["ETag"], services.instance_get

    def late(**members):
        found = look(**members)
        hers()
        return found

    monkeypatch.setattr(services, "instance_get", late)
    problem(alice.api.delete(url, HTTP_IF_MATCH=seen), 412, "precondition_failed")
    assert row().state == InstanceState.RUNNING


def test_who_names_none_or_any_changes_what_is_there(alice, url):
    for tags in (None, "*", '"0", "999", {}'):
        headers = {"HTTP_IF_MATCH": tags.format(alice.api.get(url)["ETag"])} if tags else {}
        assert alice.api.patch(url, {"name": "other"}, **headers).status_code == 202
    assert alice.api.delete(url, HTTP_IF_MATCH="*").status_code == 202


@pytest.mark.parametrize("tag", ["", "x", '"x"', '"-5"', '"999999999999999999999999"', '"²"', "7", 'W/"{}"', "{}"])
def test_what_is_no_strong_etag_of_ours_matches_nothing(alice, url, tag):
    header = {"HTTP_IF_MATCH": tag.format(row().generation)}
    problem(alice.api.patch(url, {"name": "other"}, **header), 412, "precondition_failed")
    problem(alice.api.delete(url, **header), 412, "precondition_failed")


def test_others_instances_are_missing_whatever_is_matched(charlie, url):
    for header in ("*", '"1"', f'"{row().generation}"'):
        problem(charlie.api.patch(url, {"name": "mine"}, HTTP_IF_MATCH=header), 404, "not_found")
        problem(charlie.api.delete(url, HTTP_IF_MATCH=header), 404, "not_found")


def test_a_dry_run_is_refused_alike(alice, url):
    for method, body in (("patch", {"name": "other"}), ("delete", None)):
        tried, done = (
            getattr(alice.api, method)(url + query, body, HTTP_IF_MATCH='"0"') for query in ("?dry_run=true", "")
        )
        problem(tried, 412, "precondition_failed")
        assert tried.content == done.content


def test_a_change_that_is_repeated_under_its_key_is_not_told_of_itself(alice, url):
    headers = {"HTTP_IF_MATCH": alice.api.get(url)["ETag"], "HTTP_IDEMPOTENCY_KEY": "first"}
    answers = [alice.api.patch(url, {"name": "other"}, **headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].content == answers[1].content


def test_what_is_known_is_not_told_again(alice, url, flow_master):
    tag = alice.api.get(url)["ETag"]
    asked = flow_master.asked
    for header in (tag, f"W/{tag}", f'"0", {tag}', "*"):
        answer = alice.api.get(url, HTTP_IF_NONE_MATCH=header)
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)
    assert flow_master.asked == asked
    for header in ('"0"', "", tag.strip('"')):
        assert alice.api.get(url, HTTP_IF_NONE_MATCH=header).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"), [("/whitelist", {"cidrs": ["10.0.0.0/8"]}), ("/routes", {"security": "ssl"})]
)
def test_whitelists_and_routes_make_another_etag(alice, url, path, body):
    tag = alice.api.get(url)["ETag"]
    call = alice.api.put if path == "/whitelist" else alice.api.post
    assert call(url + path, body).status_code in (200, 201, 202)
    assert alice.api.get(url, HTTP_IF_NONE_MATCH=tag).status_code == 200


def test_a_state_that_changes_is_told_and_hinders_no_change(alice, url):
    running = alice.api.get(url)["ETag"]
    Instance.objects.unscoped("a test").update(state=InstanceState.CREATING)
    answer = alice.api.get(url, HTTP_IF_NONE_MATCH=running)
    assert (answer.status_code, answer["ETag"]) == (200, f'"{row().generation}-creating"')
    Instance.objects.unscoped("a test").update(state=InstanceState.RUNNING)
    assert alice.api.patch(url, {"name": "other"}, HTTP_IF_MATCH=answer["ETag"]).status_code == 202


def test_one_that_is_deleted_meanwhile_is_missing(alice, url):
    tag = alice.api.get(url)["ETag"]
    begun = alice.api.delete(url, HTTP_IF_MATCH=tag).json()
    assert run_to_the_end(begun["operation_id"]).state == "succeeded"
    problem(alice.api.patch(url, {"name": "other"}, HTTP_IF_MATCH=tag), 404, "not_found")
    problem(alice.api.get(url, HTTP_IF_NONE_MATCH=tag), 404, "not_found")
