"""Who may do what with each node in ZooKeeper: the table, logins, and settings."""

from __future__ import annotations

import json

import pytest
from kazoo.security import make_digest_acl_credential

from dataplane.cluster import paths
from dataplane.groups.legacy import offset_path
from dataplane.transactions import producer_ids
from quota.contracts import apart, instance
from quota.contracts.change import NEW_CHANGE_PATH
from quota.contracts.identity import broker, credential
from quota.contracts.instance import ContractError
from quota.contracts.zookeeper import (
    ALL,
    DIRECTORIES,
    ROWS,
    Party,
    Right,
    UnlistedPathError,
    row_of,
    row_to_make,
)
from quota.contracts.zookeeper_login import OPEN, access_by_secret, document_given, login, verifier
from quota.zookeeper.settings import access_of
from tests.support.certificates import Authority

ID = "ins-k3v9x2qa"


def test_the_longest_way_down_is_found_and_a_star_is_one_name():
    assert row_of("/").pattern == "/"
    assert row_of("/brokers/topics/k3v9x2qa.orders").pattern == "/brokers/topics/*"
    assert row_of("/brokers/topics/k3v9x2qa.orders/partitions/0/state").pattern.endswith("/*/state")
    assert row_of("/consumers").pattern == "/consumers"
    assert row_of("/consumers/g/offsets/t/0").pattern == "/consumers/**"
    for unknown in (
        "/other",
        "/sluice/other",
        "/sluice/users/a/b",
        "/brokers/topics/t/partitions/0/other",
        "/controller/a",
    ):
        assert row_of(unknown) is None
        with pytest.raises(UnlistedPathError, match=unknown):
            row_to_make(unknown)
    assert row_to_make("/sluice/changes/").pattern == "/sluice/changes/*"  # a node that ZooKeeper numbers


def test_operators_may_do_everything_and_nobody_else_may_change_an_acl():
    for row in ROWS:
        assert row.allows(Party.OPERATORS, ALL)
        assert not any(row.allows(party, Right.ADMIN) for party in Party if party is not Party.OPERATORS)


def test_no_row_stands_twice():
    patterns = [row.pattern for row in ROWS]
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize(
    ("directory", "only"),
    [("/", Party.BROKERS), ("/brokers", Party.BROKERS), ("/brokers/ids", Party.BROKERS), ("/brokers/topics", Party.BROKERS),
     ("/sluice/applied", Party.BROKERS), ("/sluice/instances", Party.CONTROL_PLANE),
     ("/sluice/certificates", Party.CONTROL_PLANE), ("/sluice/whitelists", Party.CONTROL_PLANE)],
)  # fmt: skip
def test_only_one_party_registers_or_makes_what_others_believe(directory, only):
    assert {party for party in Party if row_of(directory).allows(party, Right.CREATE)} == {only, Party.OPERATORS}


def test_the_control_plane_can_be_neither_master_nor_controller_nor_broker():
    for path in ("/sluice/master", "/controller", "/brokers/ids/1", "/sluice/applied/1"):
        above = path.rpartition("/")[0] or "/"
        assert not row_of(above).allows(Party.CONTROL_PLANE, Right.CREATE)
        assert not row_of(above).allows(Party.CONTROL_PLANE, Right.DELETE)
        assert not row_of(path).allows(Party.CONTROL_PLANE, Right.WRITE)


def test_what_verifies_passwords_and_opens_sessions_is_read_by_brokers_and_its_writer_alone():
    for path in (apart.users_path(ID), apart.certificates_path(ID), apart.acls_path(ID)):
        assert {party for party in Party if row_of(path).allows(party, Right.READ)} == {
            Party.BROKERS,
            Party.CONTROL_PLANE,
            Party.OPERATORS,
        }


def test_a_cluster_begins_with_every_directory_that_something_is_made_in():
    assert set(paths.PERSISTENT) <= set(DIRECTORIES)
    assert {path.rpartition("/")[0] for path in (apart.spec_path(ID), *apart.beside_paths(ID))} <= set(DIRECTORIES)
    assert {instance.CHANGES_PATH, instance.APPLIED_PATH} <= set(DIRECTORIES)


def test_every_node_that_contracts_and_paths_name_has_a_row():
    made = [
        *(value for name, value in vars(instance).items() if name.endswith("_PATH")),
        apart.spec_path(ID),
        *apart.beside_paths(ID),
        NEW_CHANGE_PATH,
        *paths.PERSISTENT,
        paths.broker_path(1),
        paths.state_path("t", 0),
        paths.delete_topic_path("t"),
        paths.topic_config_path("t"),
        paths.entity_config_path(paths.broker_entity(None)),
        paths.CONFIG_CHANGE_PREFIX,
        paths.LOG_DIR_EVENT_PREFIX,
        paths.REASSIGN_PARTITIONS,
        paths.PREFERRED_ELECTION,
        paths.CONTROLLER,
        paths.CONTROLLER_EPOCH,
        producer_ids.PATH,
        offset_path("group", "topic", 0),
    ]
    assert [path for path in made if row_of(path) is None] == []


# --- logins --------------------------------------------------------------------------------------------------------


def test_each_party_has_a_login_of_its_own_which_is_no_credential_elsewhere():
    said = [login("s", party) for party in Party]
    assert len({each.partition(":")[2] for each in said}) == len(Party)
    assert login("s", Party.BROKERS) != login("other", Party.BROKERS)
    passwords = {each.partition(":")[2] for each in said}
    names = ("brokers", "masters", "controlplane", "operators", "operator", "broker-1", broker(1).name)
    assert passwords.isdisjoint({"s", *(credential("s", name) for name in names)})


def test_a_verifier_is_what_zookeeper_makes_of_a_login():
    user, _, password = login("s", Party.MASTERS).partition(":")
    assert user == "sluice-masters"
    assert verifier(f"{user}:{password}") == make_digest_acl_credential(user, password)


def test_while_a_secret_is_replaced_both_logins_are_said_and_nodes_are_open_to_both():
    access = access_by_secret(("old", "new"), Party.BROKERS)
    assert access.logins == (login("old", Party.BROKERS), login("new", Party.BROKERS))
    ids = [entry.id for entry in access.entries(row_of("/brokers/ids/1"))]
    assert ids == [verifier(login(secret, party)) for party in _of("/brokers/ids/1") for secret in ("old", "new")]


def _of(path):
    return row_of(path).rights


def test_nobody_is_named_who_has_no_right():
    access = access_by_secret(("s",), Party.BROKERS)
    entries = access.entries(row_of("/controller"))
    assert [(entry.id.partition(":")[0], entry.rights) for entry in entries] == [
        ("sluice-brokers", Right.READ),
        ("sluice-operators", ALL),
    ]
    assert access_by_secret(("s",), Party.BROKERS, closed=False).entries(row_of("/controller")) == OPEN


def test_nothing_secret_is_in_what_is_printed_of_an_access():
    text = repr(access_by_secret(("s",), Party.BROKERS))
    assert login("s", Party.BROKERS).partition(":")[2] not in text


# --- settings ------------------------------------------------------------------------------------------------------


def test_nodes_are_closed_unless_it_is_said_otherwise():
    assert access_of({}, ("s",), Party.BROKERS).closed
    assert access_of({"acl": "on"}, ("s",), Party.BROKERS).closed
    off = access_of({"acl": "off"}, ("s",), Party.BROKERS)
    assert not off.closed
    assert off.logins == (login("s", Party.BROKERS),)  # said in either case


@pytest.mark.parametrize(
    ("table", "says"),
    [({"acl": "yes"}, '"on" or "off"'), ({"acls": "on"}, "nothing else"), ("on", "nothing else"),
     ({"tls": {}}, "needs ca"), ({"tls": {"ca": "/nowhere"}}, "No such file"),
     ({"tls": {"ca": "a", "key": "b"}}, "certificate"), ({"tls": {"ca": 1}}, "names of files")],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_a_sentence(table, says):
    with pytest.raises(ContractError, match=says):
        access_of(table, ("s",), Party.BROKERS)


def test_files_of_tls_are_looked_at_when_they_are_named(tmp_path):
    ca = tmp_path / "ca.pem"
    ca.write_text(Authority("ours").pem)
    assert access_of({"tls": {"ca": str(ca)}}, ("s",), Party.BROKERS).tls.ca == str(ca)
    ca.write_text("no certificate")
    with pytest.raises(ContractError, match="tls"):
        access_of({"tls": {"ca": str(ca)}}, ("s",), Party.BROKERS)


def test_who_shall_not_have_the_secret_is_given_its_login_and_everybodys_verifiers():
    given = json.loads(json.dumps(document_given(("s",), Party.CONTROL_PLANE)))
    assert access_of({}, ("",), Party.CONTROL_PLANE, given) == access_by_secret(("s",), Party.CONTROL_PLANE)
    others = [login("s", party).partition(":")[2] for party in Party if party is not Party.CONTROL_PLANE]
    assert not any(password in json.dumps(given) for password in others)


@pytest.mark.parametrize(
    "given", [None, {}, {"logins": [], "verifiers": {}}, {"logins": ["a:b"], "verifiers": {"brokers": ["a:b"]}}]
)
def test_without_either_nothing_can_be_closed(given):
    with pytest.raises(ContractError, match="secrets"):
        access_of({}, ("",), Party.CONTROL_PLANE, given)
    if given is None:
        assert access_of({"acl": "off"}, ("",), Party.CONTROL_PLANE).logins == ()
