"""One suite for ZooKeeper's door: the in-memory tree that other tests use, and a real server, behave alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from controlplane.clusters import coordination
from controlplane.clusters.zookeeper import Check, Create, Delete, KazooTree, Put, Tree, VersionMismatch
from controlplane.core.errors import ClusterUnavailable
from controlplane.instances.spec import Bought, Listener, spec_of
from quota.contracts.apart import LARGEST_WHITELISTS, LARGEST_WRITE, acls_path, whitelists_path
from quota.contracts.change import Change
from quota.contracts.instance import CHANGES_PATH, InstanceSpec, InstanceState
from tests.support.ports import free_port
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer

from .fakes import FakeTree

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), free_port()) as server:
        yield server


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.integration)])
def tree(request) -> Iterator[Tree]:
    if request.param == "memory":
        yield FakeTree(party=None)
        return
    server = request.getfixturevalue("server")
    chroot = f"/test{abs(hash(request.node.name))}"
    parent = KazooTree(server.hosts)
    parent.wait_connected(20)
    parent.ensure(chroot)
    parent.close()
    tree = KazooTree(server.hosts + chroot)
    tree.wait_connected(20)
    yield tree
    tree.close()


def spec(**other) -> InstanceSpec:
    made = spec_of(
        instance_id="ins-k3v9x2qa",
        generation=1,
        state=InstanceState.RUNNING,
        bought=Bought(2.5, 10, 60, ["10.0.0.0/8", "::/0"], {"orders": ["10.1.2.3/32"], "none": []}),
        listeners=[Listener(1, "127.0.0.1", 20100), Listener(2, "::1", 20101)],
    )
    return replace(made, **other)


def changes(tree: Tree) -> list[bytes]:
    return [tree.get(f"{CHANGES_PATH}/{name}")[0] for name in tree.children(CHANGES_PATH)]


def test_what_is_not_there_is_none_and_has_no_children(tree):
    assert tree.get("/nothing") is None
    assert tree.children("/nothing") == []


def test_ensure_makes_parents_and_may_be_repeated(tree):
    tree.ensure("/a/b")
    tree.ensure("/a/b")
    assert tree.children("/a") == ["b"]


def test_a_mark_changes_with_the_names_below_a_node_and_with_nothing_else(tree):
    assert tree.children_mark("/nothing") == tree.children_mark("/nothing")
    tree.ensure("/a/x")
    seen = [tree.children_mark("/a")]
    tree.write([Put("/a/x", b"1", 0)])
    tree.write([Create("/b", b"")])
    assert tree.children_mark("/a") == seen[0]
    for write in (Create("/a/y", b""), Delete("/a/y"), Delete("/a/x"), Create("/a/x", b"")):
        tree.write([write])
        seen.append(tree.children_mark("/a"))
    assert all(one != other for one, other in pairwise(seen))


def test_versions_count_from_zero_and_guard(tree):
    tree.ensure("/a")
    tree.write([Create("/a/x", b"1")])
    assert tree.get("/a/x") == (b"1", 0)
    tree.write([Put("/a/x", b"2", 0)])
    assert tree.get("/a/x") == (b"2", 1)
    for stale in (Put("/a/x", b"3", 0), Delete("/a/x", 0), Create("/a/x", b""), Put("/a/y", b"", 0), Delete("/a/y")):
        with pytest.raises(VersionMismatch):
            tree.write([stale])
    tree.write([Delete("/a/x", 1)])
    assert tree.get("/a/x") is None


def test_a_write_happens_whole_or_not_at_all(tree):
    tree.ensure("/a")
    with pytest.raises(VersionMismatch):
        tree.write([Create("/a/x", b"1"), Put("/a/missing", b"", 3)])
    assert tree.children("/a") == []
    with pytest.raises(VersionMismatch):
        tree.write([Create("/no/parent", b"")])


def test_a_node_with_children_goes_with_them_or_not_at_all(tree):
    tree.write([Create("/a", b""), Create("/a/b", b"")])
    with pytest.raises(VersionMismatch):
        tree.write([Delete("/a")])
    tree.write([Delete("/a/b"), Delete("/a"), Create("/a", b"new")])
    assert (tree.get("/a"), tree.children("/a")) == ((b"new", 0), [])


def test_a_check_writes_nothing_and_lets_nothing_be_written_at_another_version(tree):
    tree.ensure("/a/x")
    tree.write([Check("/a/x", 0), Create("/a/y", b"")])
    assert tree.get("/a/x") == (b"", 0)
    for stale in (Check("/a/x", 1), Check("/a/z", 0)):
        with pytest.raises(VersionMismatch):
            tree.write([stale, Create("/a/z", b"")])
    assert tree.children("/a") == ["x", "y"]


def test_a_write_of_the_largest_size_is_taken_and_one_that_is_larger_looks_as_if_nobody_were_there(tree):
    tree.ensure("/sluice/whitelists")
    path = whitelists_path("ins-k3v9x2qa")
    rest = LARGEST_WRITE - LARGEST_WHITELISTS
    tree.write([Create(path, bytes(LARGEST_WHITELISTS)), Create("/sluice/rest", bytes(rest)), Create("/sluice/c", b"")])
    assert len(tree.get(path)[0]) == LARGEST_WHITELISTS
    with pytest.raises(ClusterUnavailable):
        tree.write([Put(path, bytes(2**20), 0)])
    wait_for(lambda: _version(tree, path) == 0, 15, "the connection to be there again")


def _version(tree, path):
    try:
        return tree.get(path)[1]
    except ClusterUnavailable:
        return None


def test_a_sequence_counts_up(tree):
    tree.ensure("/a")
    for _ in range(3):
        tree.write([Create("/a/n-", b"", sequence=True)])
    names = tree.children("/a")
    assert names == ["n-0000000000", "n-0000000001", "n-0000000002"]


def test_the_spec_written_is_the_spec_that_comes_back(tree):
    coordination.spec_write(tree, spec())
    assert coordination.spec_read(tree, "ins-k3v9x2qa") == (spec(), 0)
    assert changes(tree) == [Change("ins-k3v9x2qa").to_json()]


def test_only_a_higher_generation_replaces_a_spec(tree):
    coordination.spec_write(tree, spec(generation=3))
    coordination.spec_write(tree, spec(generation=2, whitelist=()))
    coordination.spec_write(tree, spec(generation=3, whitelist=()))
    assert coordination.spec_read(tree, "ins-k3v9x2qa") == (spec(generation=3), 0)
    assert len(changes(tree)) == 1
    coordination.spec_write(tree, spec(generation=4, whitelist=()))
    assert coordination.spec_read(tree, "ins-k3v9x2qa") == (spec(generation=4, whitelist=()), 1)
    assert len(changes(tree)) == 2


def test_a_spec_is_removed_once(tree):
    coordination.spec_write(tree, spec())
    coordination.spec_remove(tree, "ins-k3v9x2qa")
    coordination.spec_remove(tree, "ins-k3v9x2qa")
    assert coordination.spec_read(tree, "ins-k3v9x2qa") is None
    assert len(changes(tree)) == 2


def test_old_changes_are_pruned(tree):
    for generation in range(1, 8):
        coordination.spec_write(tree, spec(generation=generation))
    assert coordination.changes_prune(tree, keep=3) == 4
    assert tree.children(CHANGES_PATH) == [f"change-{number:010d}" for number in (4, 5, 6)]
    assert coordination.changes_prune(tree, keep=3) == 0


def test_brokers_are_read_from_kafkas_own_registrations(tree):
    tree.ensure("/brokers/ids")
    kafka_3_9 = (
        b'{"features":{},"listener_security_protocol_map":{"INTERNAL":"SASL_PLAINTEXT"},'
        b'"endpoints":["INTERNAL://127.0.0.1:20012"],"jmx_port":-1,"port":-1,"host":null,"version":5,"timestamp":"1"}'
    )
    tree.write([Create("/brokers/ids/2", kafka_3_9)])
    tree.write([Create("/brokers/ids/1", b'{"host":"10.0.0.1","port":9092,"endpoints":[],"rack":"a"}')])
    tree.write([Create("/brokers/ids/3", b"{")])
    assert coordination.live_brokers(tree) == [
        coordination.LiveBroker(1, "10.0.0.1", 9092, "a"),
        coordination.LiveBroker(2, "127.0.0.1", 20012),
    ]


def test_the_master_is_found_or_not(tree):
    assert coordination.master(tree) is None
    tree.ensure("/sluice")
    tree.write(
        [Create("/sluice/master", b'{"id": 1, "report": "127.0.0.1:1", "http": "http://127.0.0.1:2/", "epoch": 3}')]
    )
    assert coordination.master(tree) == coordination.MasterAddress(1, "http://127.0.0.1:2", 3)


@pytest.mark.integration
def test_a_server_that_is_away_is_an_error_within_seconds_and_comes_back(tmp_path):
    server = ZooKeeperServer(tmp_path / "zookeeper", free_port())
    server.start()
    tree = KazooTree(server.hosts)
    try:
        tree.wait_connected(20)
        coordination.spec_write(tree, spec())
        server.kill()
        with pytest.raises(ClusterUnavailable):
            tree.write([Create("/sluice/x", b"")])
        server.start()
        tree.wait_connected(20)
        assert coordination.spec_read(tree, "ins-k3v9x2qa") == (spec(), 0)
    finally:
        tree.close()
        server.stop()


def test_of_two_who_write_beside_a_spec_both_are_kept(tree):
    coordination.spec_write(tree, spec())
    path = acls_path("ins-k3v9x2qa")
    before = len(changes(tree))
    others = [b"first of the others", b"second of the others"]

    def decide(data: bytes | None) -> bytes:
        if others:  # somebody writes while this one decides
            other = others.pop()
            coordination.beside_write(tree, "ins-k3v9x2qa", path, lambda now: (now or b"") + other)
        return (data or b"") + b", and mine"

    coordination.beside_write(tree, "ins-k3v9x2qa", path, decide)
    assert coordination.beside_read(tree, path) == b"second of the othersfirst of the others, and mine"
    assert len(changes(tree)) == before + 3
