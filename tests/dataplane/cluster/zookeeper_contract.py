"""What every ZooKeeper door must do. A test class inherits it and gives the fixture `ensemble`.

ensemble.connect() -> ZooKeeper     a door with a session of its own
ensemble.wait(future) -> value      run until it is resolved; raises its error
ensemble.until(condition)           run until it holds; fails after a bounded time
ensemble.expire(zookeeper)          the server ends its session
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from dataplane.doors import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SetData,
    ZooKeeper,
    ZooKeeperError,
)
from dataplane.tasks import Future


class Ensemble(Protocol):
    def connect(self) -> ZooKeeper: ...
    def wait(self, future: Future[Any]) -> Any: ...
    def until(self, condition: Callable[[], bool]) -> None: ...
    def expire(self, zookeeper: ZooKeeper) -> None: ...


class ZooKeeperContract:
    def test_a_node_keeps_its_data_and_counts_its_versions(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        assert ensemble.wait(zookeeper.create("/a", b"one")) == "/a"
        data, stat = ensemble.wait(zookeeper.get("/a"))
        assert (data, stat.version, stat.ephemeral_owner) == (b"one", 0, 0)
        assert ensemble.wait(zookeeper.set("/a", b"two", 0)).version == 1
        assert ensemble.wait(zookeeper.get("/a"))[0] == b"two"
        assert ensemble.wait(zookeeper.exists("/a")).czxid == stat.czxid

    def test_a_node_counts_the_children_that_came_and_went(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        ensemble.wait(zookeeper.create("/a"))

        def changes() -> int:
            return int(ensemble.wait(zookeeper.exists("/a")).child_changes)

        assert changes() == 0
        ensemble.wait(zookeeper.multi([Create("/a/b"), Create("/a/c"), Create("/a/b/d")]))
        assert changes() == 2
        ensemble.wait(zookeeper.multi([Delete("/a/b/d"), Delete("/a/b")]))
        assert changes() == 3
        with pytest.raises(NodeExistsError):
            ensemble.wait(zookeeper.multi([Delete("/a/c"), Create("/a")]))
        with pytest.raises(NodeExistsError):
            ensemble.wait(zookeeper.multi([Create("/a/e"), Create("/a")]))
        assert changes() == 3
        ensemble.wait(zookeeper.create("/a/s-", sequential=True))
        assert changes() == ensemble.wait(zookeeper.get("/a"))[1].child_changes == 4

    def test_errors_say_what_was_wrong(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        ensemble.wait(zookeeper.create("/a/b", parents=True))
        refusals: list[tuple[Future[Any], type[ZooKeeperError]]] = [
            (zookeeper.create("/a"), NodeExistsError),
            (zookeeper.create("/no/parent"), NoNodeError),
            (zookeeper.get("/none"), NoNodeError),
            (zookeeper.children("/none"), NoNodeError),
            (zookeeper.set("/none", b""), NoNodeError),
            (zookeeper.set("/a", b"", 7), BadVersionError),
            (zookeeper.delete("/none"), NoNodeError),
            (zookeeper.delete("/a/b", 7), BadVersionError),
            (zookeeper.delete("/a"), NotEmptyError),
        ]
        for future, error in refusals:
            with pytest.raises(error):
                ensemble.wait(future)
        assert ensemble.wait(zookeeper.exists("/none")) is None

    def test_reads_begun_together_find_each_its_own(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        paths = [f"/n{number}" for number in range(1_100)]
        ensemble.wait(zookeeper.multi([Create(path, path.encode()) for path in paths]))
        found = [(path, zookeeper.get(path), zookeeper.get(path + "-none"), zookeeper.exists(path)) for path in paths]
        for path, data, missing, stat in found:
            assert ensemble.wait(data)[0] == path.encode()
            assert ensemble.wait(stat) == ensemble.wait(data)[1]
            with pytest.raises(NoNodeError):
                ensemble.wait(missing)

    def test_reads_see_what_was_written_before_them_and_nothing_after(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        reads = [zookeeper.exists("/a")]
        for value in (b"one", b"two"):
            zookeeper.create("/a", value)
            reads += [zookeeper.get("/a"), zookeeper.exists("/a")]
            zookeeper.delete("/a")
            reads.append(zookeeper.exists("/a"))
        before, one, one_is, between, two, two_is, after = [ensemble.wait(read) for read in reads]
        assert before is between is after is None
        assert (one[0], two[0]) == (b"one", b"two")
        assert (one_is, two_is) == (one[1], two[1])

    def test_parents_are_made_on_request_only(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        assert ensemble.wait(zookeeper.create("/x/y/z", b"d", parents=True)) == "/x/y/z"
        assert ensemble.wait(zookeeper.get("/x/y"))[0] == b""

    def test_sequential_names_grow_and_children_come_sorted(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        ensemble.wait(zookeeper.create("/q"))
        first = ensemble.wait(zookeeper.create("/q/n_", sequential=True))
        second = ensemble.wait(zookeeper.create("/q/n_", sequential=True))
        assert first == "/q/n_0000000000"
        assert second > first
        assert ensemble.wait(zookeeper.children("/q")) == [first[3:], second[3:]]

    def test_a_node_made_again_has_a_new_czxid(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        ensemble.wait(zookeeper.create("/a"))
        before = ensemble.wait(zookeeper.exists("/a")).czxid
        ensemble.wait(zookeeper.delete("/a"))
        ensemble.wait(zookeeper.create("/a"))
        assert ensemble.wait(zookeeper.exists("/a")).czxid > before

    def test_a_multi_does_all_or_nothing(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        ensemble.wait(zookeeper.create("/fence"))
        ensemble.wait(zookeeper.create("/a", b"one"))
        with pytest.raises(BadVersionError):
            ensemble.wait(zookeeper.multi([SetData("/a", b"two"), Create("/b"), Check("/fence", 1)]))
        assert ensemble.wait(zookeeper.get("/a"))[0] == b"one"
        assert ensemble.wait(zookeeper.exists("/b")) is None
        results = ensemble.wait(
            zookeeper.multi(
                [Check("/fence", 0), Create("/b", b"x"), Create("/b/s", sequential=True), SetData("/a", b"3", 0)]
            )
        )
        assert results[:3] == [None, "/b", "/b/s0000000000"]
        assert results[3].version == 1
        assert ensemble.wait(zookeeper.multi([Delete("/b/s0000000000"), Delete("/b")])) == [None, None]

    def test_a_multi_raises_the_error_of_the_operation_that_failed(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        ensemble.wait(zookeeper.create("/a"))
        for operations, error in (
            ([Create("/b"), Create("/a")], NodeExistsError),
            ([Create("/b"), Delete("/none")], NoNodeError),
            ([Check("/none", 0), Create("/b")], NoNodeError),
        ):
            with pytest.raises(error):
                ensemble.wait(zookeeper.multi(operations))
        assert ensemble.wait(zookeeper.exists("/b")) is None

    def test_watches_fire_once(self, ensemble: Ensemble) -> None:
        zookeeper, other = ensemble.connect(), ensemble.connect()
        ensemble.wait(zookeeper.create("/a", b"one"))
        fired: list[str] = []
        ensemble.wait(zookeeper.get("/a", lambda: fired.append("data")))
        ensemble.wait(zookeeper.children("/a", lambda: fired.append("children")))
        ensemble.wait(zookeeper.exists("/new", lambda: fired.append("new")))
        ensemble.wait(other.set("/a", b"two"))
        ensemble.until(lambda: fired == ["data"])
        ensemble.wait(other.create("/a/b"))
        ensemble.until(lambda: fired == ["data", "children"])
        ensemble.wait(other.create("/new"))
        ensemble.until(lambda: fired == ["data", "children", "new"])
        ensemble.wait(other.set("/a", b"three"))
        ensemble.wait(other.create("/a/c"))
        ensemble.wait(other.set("/new", b"2"))
        ensemble.wait(zookeeper.get("/a"))  # a round trip: an event would have come before it
        assert fired == ["data", "children", "new"]

    def test_a_watch_tells_of_the_end_of_its_node(self, ensemble: Ensemble) -> None:
        zookeeper, other = ensemble.connect(), ensemble.connect()
        ensemble.wait(zookeeper.create("/a"))
        fired: list[str] = []
        ensemble.wait(zookeeper.exists("/a", lambda: fired.append("gone")))
        ensemble.wait(other.delete("/a"))
        ensemble.until(lambda: fired == ["gone"])

    def test_an_ephemeral_node_belongs_to_its_session(self, ensemble: Ensemble) -> None:
        owner, other = ensemble.connect(), ensemble.connect()
        ensemble.wait(owner.create("/e", ephemeral=True))
        stat = ensemble.wait(other.exists("/e"))
        assert stat.ephemeral_owner == owner.session_id() != other.session_id()
        with pytest.raises(ZooKeeperError):
            ensemble.wait(owner.create("/e/child"))
        gone: list[bool] = []
        ensemble.wait(other.exists("/e", lambda: gone.append(True)))
        owner.close()
        ensemble.until(lambda: gone == [True])
        assert ensemble.wait(other.exists("/e")) is None

    def test_expiry_ends_ephemerals_fires_watches_and_brings_a_new_session(self, ensemble: Ensemble) -> None:
        zookeeper, other = ensemble.connect(), ensemble.connect()
        told: list[str] = []
        fired: list[bool] = []
        zookeeper.on_session(told.append)
        before = zookeeper.session_id()
        ensemble.wait(zookeeper.create("/e", ephemeral=True))
        ensemble.wait(zookeeper.create("/p", b"stays"))
        ensemble.wait(zookeeper.get("/p", lambda: fired.append(True)))
        ensemble.expire(zookeeper)
        ensemble.until(lambda: told[-1:] == ["connected"])
        assert told.index("expired") < told.index("connected")
        ensemble.until(lambda: fired == [True])
        assert zookeeper.session_id() not in (0, before)
        assert ensemble.wait(zookeeper.exists("/e")) is None
        assert ensemble.wait(other.get("/p"))[0] == b"stays"

    def test_calls_of_one_session_are_applied_in_order(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        ensemble.wait(zookeeper.create("/n", b""))
        order: list[int] = []
        futures = [zookeeper.set("/n", str(i).encode()) for i in range(20)]
        for i, future in enumerate(futures):
            future.then(lambda _, i=i: order.append(i))
        versions = [ensemble.wait(future).version for future in futures]
        assert versions == list(range(1, 21))
        assert order == list(range(20))

    def test_a_closed_door_refuses(self, ensemble: Ensemble) -> None:
        zookeeper = ensemble.connect()
        zookeeper.close()
        with pytest.raises(ZooKeeperError):
            ensemble.wait(zookeeper.get("/"))
