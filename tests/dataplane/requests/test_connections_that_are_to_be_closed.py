"""Of very many connections that may not be any more some are closed in each turn. Until its turn comes none is served."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.decoded import Decoded
from dataplane.protocol.errors import ErrorCode
from dataplane.tenancy.access import refusal_if_shut_out
from quota.contracts.instance import Endpoint, Route
from quota.contracts.token_issuers import TokenIssuer, TokenIssuerSet
from quota.contracts.users import User, UserSet
from tests.dataplane.requests.test_both_ways_decide_alike import World, fetch_frame, produce_frame

ROUTE = Route("default", {1: Endpoint(("127.0.0.1", 9100), ("203.0.113.9", 9100))})
ANN = UserSet().changed([User("ann", ())])
ISSUER = TokenIssuer("https://login.example.com/", ("kafka",))
WAYS = pytest.mark.parametrize("short_cuts", [True, False])


def connected(*, short_cuts, user=None, issuer=None):
    """A client of the instance that has produced and fetched, by the short cuts where there are any."""
    world = World(short_cuts=short_cuts)
    world.change(routes=(ROUTE,), users=ANN, token_issuers=TokenIssuerSet(1, (ISSUER,)))
    if user is not None:
        world.client.session.log_in(user, "PLAIN" if issuer is None else "OAUTHBEARER", None, issuer)
    world.instance.connected(world.client)
    for _ in range(3):
        world.produced()
        world.fetched()
        world.fetched(wait_ms=5_000)
    assert bool(world.produce_path.served and world.fetch_path.served) == short_cuts
    return world


def closed(world):
    """As when the spec says so, and nobody has come to closing anything."""
    world.instance.close_connections()


def closed_and_opened_again(world):
    closed(world)
    world.change()


def a_user_goes(world):
    world.change(users=UserSet(2))


def a_user_goes_and_comes_again(world):
    a_user_goes(world)
    world.change(users=UserSet(2).changed([User("ann", ())]))


ENDS = {
    "whitelist": lambda world: world.change(whitelist=("10.0.0.0/8",)),
    "the route's whitelist": lambda world: world.change(routes=(replace(ROUTE, whitelist=()),)),
    "security": lambda world: world.change(routes=(replace(ROUTE, security="sasl_plaintext"),)),
    "no route": lambda world: world.change(routes=()),
    "closed route": lambda world: world.instance.close_route("default"),
    "stopped": closed,
    "stopped and running again": closed_and_opened_again,
    "user": a_user_goes,
    "user of the same name": a_user_goes_and_comes_again,
}


@WAYS
@pytest.mark.parametrize("frame", [produce_frame(), fetch_frame()], ids=["produce", "fetch"])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_served_on_a_connection_that_waits_to_be_closed(short_cuts, frame, end):
    world = connected(short_cuts=short_cuts, user="ann")
    records = world.effects()["records"]
    ENDS[end](world)
    assert world.ask(frame) == b""
    assert world.socket.is_closed
    assert world.effects()["records"] == records


@WAYS
def test_nor_on_one_by_a_token_of_an_issuer_that_is_trusted_no_more(short_cuts):
    world = connected(short_cuts=short_cuts, user="carol", issuer=ISSUER)
    world.change(token_issuers=TokenIssuerSet(2))
    assert world.ask(fetch_frame()) == b""
    assert world.socket.is_closed


@WAYS
@pytest.mark.parametrize("end", ENDS)
def test_what_a_fetch_has_waited_for_is_not_sent_to_who_may_not_be_there_any_more(short_cuts, end):
    world = connected(short_cuts=short_cuts, user="ann")
    assert world.ask(fetch_frame(offset=3, wait_ms=5_000)) == b""
    ENDS[end](world)
    sent = len(world.socket.sent)
    world.cluster.produce(1, "written since")
    world.cluster.run(0.01)
    assert len(world.socket.sent) == sent
    assert world.socket.is_closed


@WAYS
@pytest.mark.parametrize(
    "change",
    [
        {"whitelist": ("127.0.0.0/8",)},
        {"users": UserSet(2).changed([User("ann", ()), User("bob", ())])},
        {"routes": (ROUTE, replace(ROUTE, id="public"))},
        {"topic_whitelists": {"events": ()}},
    ],
)
def test_who_may_stay_is_served_while_others_are_being_closed(short_cuts, change):
    world = connected(short_cuts=short_cuts, user="ann")
    world.change(**change)
    assert world.produced().error_code == world.fetched().error_code == 0
    assert not world.socket.is_closed


@WAYS
def test_who_comes_by_a_route_that_was_opened_again_is_served(short_cuts):
    world = connected(short_cuts=short_cuts)
    world.instance.close_route("default")
    world.change()
    world.instance.disconnected(world.client)
    world.instance.connected(world.client)  # as somebody who has come since
    assert world.produced().error_code == world.fetched().error_code == 0
    assert not world.socket.is_closed


@pytest.mark.parametrize("end", ENDS)
def test_a_long_request_that_is_being_decoded_meanwhile_is_not_served(end):
    world = connected(short_cuts=False, user="ann")
    world.broker.decoded = Decoded()
    sent = len(world.socket.sent)
    world.socket.receive(produce_frame(value=b"v" * 2**21))
    assert not world.socket.is_closed
    ENDS[end](world)
    world.cluster.run(0.1)
    assert len(world.socket.sent) == sent
    assert world.socket.is_closed


def test_a_change_that_has_waited_for_its_turn_is_not_made_for_who_is_to_be_closed():
    world = connected(short_cuts=False, user="ann")
    assert refusal_if_shut_out(world.client.session) is ErrorCode.NONE
    a_user_goes_and_comes_again(world)
    assert world.instance.still_lets_in(world.client.session), "as one of the name would be who comes now"
    assert refusal_if_shut_out(world.client.session) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
