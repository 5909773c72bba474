"""Token issuers of an instance, as a broker finds them in ZooKeeper: read where a route has use for them, in force at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quota.contracts.apart import nodes_of, token_issuers_path
from quota.contracts.token_issuers import TokenIssuerSet
from tests.dataplane.tenancy.test_registry import INSTANCE, World, spec_of
from tests.support.tokens import BY_TOKEN, Issuer

PATH = token_issuers_path(INSTANCE)
ONE, TWO = Issuer("one"), Issuer("two")


@pytest.fixture
def world():
    return World()


def by_token(generation=1):
    spec = spec_of(generation)
    return replace(spec, routes=(replace(spec.routes[0], **BY_TOKEN),))


def known(world):
    return list(world.registry.get(INSTANCE).token_issuers)


def issuers(version, *them):
    return TokenIssuerSet(version, tuple(each.trusted for each in them)).to_json()


def test_they_are_known_at_the_start_and_whenever_they_are_of_a_later_version(world):
    world.write_nodes({**nodes_of(by_token()), PATH: issuers(1, ONE)})
    world.start()
    assert known(world) == ["one"]
    world.write_nodes({PATH: issuers(2, ONE, TWO)})
    assert known(world) == ["one", "two"]
    world.write_nodes({PATH: issuers(3)})
    assert known(world) == []


def test_without_a_node_there_are_none(world):
    world.write_nodes(nodes_of(by_token()))
    world.start()
    assert world.connects()
    assert known(world) == []


def test_they_are_read_when_a_route_begins_to_take_tokens(world):
    world.write_nodes({**nodes_of(spec_of()), PATH: issuers(1, ONE)})
    world.start()
    assert known(world) == []
    world.write_nodes(nodes_of(by_token(2)))
    assert known(world) == ["one"]


@pytest.mark.parametrize("spec", [by_token(), spec_of()], ids=["takes tokens", "does not"])
def test_a_node_that_is_not_legible_shuts_an_instance_that_has_use_for_it(world, spec):
    world.write_nodes({**nodes_of(spec), PATH: issuers(1, ONE)})
    world.start()
    assert world.connects()
    world.write_nodes({PATH: b"not JSON"})
    takes_tokens = spec == by_token()
    assert world.connects() is not takes_tokens
    assert ("not legible" in (world.applied()[INSTANCE].problem or "")) is takes_tokens
    world.write_nodes({PATH: issuers(2, TWO)})
    assert world.connects()
    assert known(world) == (["two"] if takes_tokens else [])
