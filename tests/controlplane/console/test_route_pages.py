"""Routes on the Access page: listed with their addresses, opened, changed and removed by forms, with what to paste."""

from __future__ import annotations

import pytest

from controlplane.core.errors import ClusterUnavailable
from controlplane.core.models import Operation
from controlplane.instances.models import Route
from controlplane.snippets import selectors as connecting
from controlplane.snippets.programs import CONSUMERS, snippets
from tests.controlplane.conftest import run_to_the_end

from .conftest import text_of

OPENED = {
    "security": "sasl_ssl",
    "mechanisms": ["SCRAM-SHA-512", "PLAIN"],
    "client_certificates": "none",
    "principal_mapping": "",
    "scope": "own",
    "cidrs": "10.0.0.0/8\n192.0.2.7",
    "connections": "40",
    "connections_per_address": "",
    "advertised_host": "kafka.example.com",
    "public": "on",
    "closes_at": "2040-01-02T03:04",
}


@pytest.fixture
def path(instance):
    return f"instances/{instance.id}"


@pytest.fixture
def opened(at_alice, path):
    """A public route, as the form makes it; that it is open when this returns."""
    answer = at_alice.post(f"{path}/new-route", OPENED)
    assert answer.status_code == 302, text_of(answer)
    [operation] = Operation.objects.unscoped("a test").filter(kind="route.create")
    assert answer["Location"].endswith(f"/operations/{operation.id}")
    assert run_to_the_end(operation.id).state == "succeeded"
    return Route.objects.unscoped("a test").get(key="r2")


def test_the_access_page_lists_routes_with_their_addresses(at_alice, path, opened):
    shown = text_of(at_alice.get(f"{path}/access"))
    assert "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102" in shown
    assert "kafka.example.com:20103,kafka.example.com:20104,kafka.example.com:20105" in shown
    for words in ("default", "PLAINTEXT", "r2", "SASL_SSL", "SCRAM-SHA-512, PLAIN", "public", "never", "Running"):
        assert words in shown


def test_a_form_opens_a_route_as_it_says(opened):
    assert (opened.security, opened.mechanisms, opened.whitelist) == (
        "sasl_ssl",
        ["SCRAM-SHA-512", "PLAIN"],
        ["10.0.0.0/8", "192.0.2.7/32"],
    )
    assert (opened.connections, opened.connections_per_address, opened.public) == (40, None, True)
    assert f"{opened.closes_at:%Y-%m-%d %H:%M %Z}" == "2040-01-02 03:04 UTC"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mechanisms": []}, "needs one or more of PLAIN"),
        ({"cidrs": "10.0.0.1/8"}, "Line 1"),
        ({"closes_at": "2020-01-01T00:00"}, "in the future"),
        ({"advertised_host": "a b"}, "neither a host name nor an address"),
        ({"principal_mapping": "CN=x"}, "is no rule"),
    ],
)
def test_what_is_wrong_stands_in_the_form(at_alice, path, instance, changes, words):
    answer = at_alice.post(f"{path}/new-route", {**OPENED, **changes})
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert Route.objects.unscoped("a test").count() == 1


def test_a_second_public_route_is_refused_beside_its_box(at_alice, path, opened):
    answer = at_alice.post(f"{path}/new-route", OPENED)
    assert answer.status_code == 422
    assert "may have one public route" in text_of(answer)


def test_the_page_of_a_route_has_what_to_paste_by_its_security(at_alice, path, opened):
    shown = text_of(at_alice.get(f"{path}/routes/r2"))
    for words in (
        "sasl.mechanism=SCRAM-SHA-512",
        "ScramLoginModule",
        "security.protocol=SASL_SSL",
        "ssl.truststore.location",
    ):
        assert words in shown
    assert "security.protocol=PLAINTEXT" in text_of(at_alice.get(f"{path}/routes/default"))


def test_saving_what_is_there_changes_nothing_and_other_members_only_these(at_alice, path, opened):
    answer = at_alice.post(f"{path}/routes/r2", OPENED)
    assert answer["Location"].endswith("/routes/r2")
    assert "Nothing was changed" in text_of(at_alice.get(f"{path}/routes/r2"))
    assert not Operation.objects.unscoped("a test").filter(kind="route.update").exists()
    assert at_alice.post(f"{path}/routes/r2", {**OPENED, "scope": "instance", "connections": ""}).status_code == 302
    opened.refresh_from_db()
    assert (opened.whitelist, opened.connections, opened.security) == (None, None, "sasl_ssl")


def test_a_form_that_was_opened_before_anothers_change_does_not_undo_it_unseen(at_alice, alice, path, opened):
    seen = at_alice.get(f"{path}/routes/r2").context["form"].state
    rest = f"/api/v1/instances/{path.rstrip('/').rpartition('/')[2]}/routes/r2"
    assert alice.api.patch(rest, {"whitelist": ["192.0.2.1/32"]}).status_code == 202
    late = at_alice.post(f"{path}/routes/r2", {**OPENED, "connections": "7", "state": seen})
    assert late.status_code == 422
    assert "Somebody else has changed this route" in late.content.decode()
    assert alice.api.get(rest).json()["whitelist"] == ["192.0.2.1/32"]
    meant = {**OPENED, "connections": "7", "state": late.context["form"].state}
    assert at_alice.post(f"{path}/routes/r2", meant).status_code == 302


def test_a_route_is_removed_once_this_is_meant(at_alice, path, opened):
    assert at_alice.post(f"{path}/routes/r2/removal", {"confirmed": ""}).status_code == 422
    answer = at_alice.post(f"{path}/routes/r2/removal", {"confirmed": "on"})
    assert answer.status_code == 302
    assert Operation.objects.unscoped("a test").filter(kind="route.delete").exists()
    assert "Deleting" in text_of(at_alice.get(f"{path}/access"))


def test_the_last_route_stays_and_why_is_said(at_alice, path):
    answer = at_alice.post(f"{path}/routes/default/removal", {"confirmed": "on"})
    assert answer.status_code == 422
    assert "no other route that is open" in text_of(answer)


def test_the_instances_page_shows_its_default_route(at_alice, path, opened):
    shown = text_of(at_alice.get(path))
    assert "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102" in shown
    assert "security.protocol=PLAINTEXT" in shown
    assert "kafka.example.com" not in shown


# --- what to paste ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "shown"), [({"zebra", "orders", "__lake"}, "orders"), ({"__lake"}, "my-topic"), (None, "my-topic")]
)
def test_what_is_to_be_pasted_names_a_topic_of_the_instance(at_alice, path, opened, monkeypatch, names, shown):
    def topic_names(_cluster, _instance):
        if names is None:
            raise ClusterUnavailable("ZooKeeper does not answer")
        return names

    monkeypatch.setattr(connecting.groups, "topic_names", topic_names)
    for page in (path, f"{path}/routes/r2"):
        found = at_alice.get(page).content.decode()
        assert "kafka-console-producer.sh --bootstrap-server " in found, page
        assert found.count(f"--topic {shown}") == 2, page


@pytest.mark.parametrize(("names", "is_said"), [([], True), (["__audit"], True), (["orders"], False), (None, False)])
def test_where_there_is_no_topic_it_is_said_beside_the_snippet(at_alice, path, monkeypatch, names, is_said):
    def topic_names(*_anything):
        if names is None:
            raise ClusterUnavailable("the cluster does not answer")
        return names

    monkeypatch.setattr(connecting.groups, "topic_names", topic_names)
    assert ("The instance has no topic yet: make one first" in text_of(at_alice.get(path))) == is_said


def test_programs_that_write_have_one_that_reads_beside_them(at_alice, path):
    page = at_alice.get(path).content.decode()
    for key in CONSUMERS:
        assert f'id="snippet-{key}-consumer"' in page
    found = {each.key: each.consumer for each in snippets("h:1,h:2", security="sasl_ssl", mechanisms=["PLAIN"])}
    assert {key for key, text in found.items() if text} == set(CONSUMERS)
    for key in CONSUMERS:
        assert all(word in found[key] for word in ("my-group", "my-topic", "USER", "PASSWORD", "ca.pem"))
    for key in ("python", "kafka-python", "aiokafka"):
        compile(found[key], key, "exec")


def texts(security, *mechanisms):
    return {each.key: each.text for each in snippets("h:1,h:2", security=security, mechanisms=mechanisms)}


@pytest.mark.parametrize(
    ("security", "mechanisms", "native"),
    [
        ("plaintext", (), {}),
        ("ssl", (), {"security.protocol": "ssl", "ssl.ca.location": "ca.pem"}),
        (
            "sasl_plaintext",
            ("PLAIN",),
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "USER",
                "sasl.password": "PASSWORD",
            },
        ),
        (
            "sasl_ssl",
            ("PLAIN", "SCRAM-SHA-512"),
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "USER",
                "sasl.password": "PASSWORD",
                "ssl.ca.location": "ca.pem",
            },
        ),
    ],
)
def test_librdkafka_takes_the_python_snippet(security, mechanisms, native, tmp_path, monkeypatch):
    """Run as it is, but for what the reader has to put in and the broker that is not there."""
    import confluent_kafka

    made = []
    monkeypatch.setattr(confluent_kafka, "Producer", made.append)
    text = texts(security, *mechanisms)["python"]
    exec(compile(text.split("producer.produce")[0], "snippet", "exec"), {})
    assert made == [{"bootstrap.servers": "h:1,h:2", **native}]
    monkeypatch.undo()
    config = {name: value for name, value in made[0].items() if name != "ssl.ca.location"}
    confluent_kafka.Producer(config)  # librdkafka knows every property


@pytest.mark.parametrize(
    ("security", "mechanism"),
    [("ssl", None), ("sasl_plaintext", "SCRAM-SHA-256"), ("sasl_ssl", "PLAIN"), ("sasl_ssl", "OAUTHBEARER")],
)
def test_every_snippet_names_the_protocol_and_the_mechanism(security, mechanism):
    found = texts(security, *filter(None, [mechanism]))
    assert len(found) == 10
    by_objects = {"node", "franz-go", "sarama"}  # have no word for a protocol
    for key, text in found.items():
        assert security in text.lower() or key in by_objects
        assert mechanism is None or mechanism in text or key in {"node", "franz-go"}  # which write it in their own way
        assert ("ca.pem" in text) == security.endswith("ssl"), key
        assert ("PASSWORD" in text) == (mechanism not in (None, "OAUTHBEARER")), key
    for key in ("python", "kafka-python", "java", "spring", "tools", "kcat"):
        assert "{" not in found[key].replace("{\n", "").replace('{"', "")
    for key in ("python", "kafka-python", "aiokafka"):
        compile(found[key], key, "exec")
