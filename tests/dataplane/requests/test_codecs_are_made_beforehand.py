"""Who sends the first request of a kind does not wait for its codecs: a broker has made them when it has nothing else to do."""

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.codec import encoder, short_decoder
from dataplane.records.steps import run_through
from dataplane.requests.codecs import decoder_of, made_beforehand, make_beforehand
from dataplane.slices import Slices
from tests.support.memory_files import ImmediateBackground
from tests.support.virtual_loop import VirtualNetwork


def made():
    return short_decoder.cache_info().misses + encoder.cache_info().misses


def test_nothing_is_left_to_be_made_for_a_short_request_of_any_api_and_version():
    run_through(made_beforehand())
    before = made()
    for row in HANDLERS.values():
        for version in range(row.low, row.high + 1):
            decoder_of(row, version)
            encoder(row.api.response, version)
    assert made() == before


def test_one_is_made_in_a_step():
    short_decoder.cache_clear()
    encoder.cache_clear()
    before = made()
    for number, _ in enumerate(made_beforehand(), 1):
        assert made() - before <= number
    assert made() - before == 2 * sum(row.high - row.low + 1 for row in HANDLERS.values())


def test_they_are_not_made_while_a_broker_that_has_just_started_is_told_what_it_leads():
    short_decoder.cache_clear()
    encoder.cache_clear()
    before, network = made(), VirtualNetwork(1)
    loop = network.loop("b1")
    make_beforehand(loop, Slices(loop, ImmediateBackground()))
    network.run_for(4)
    assert made() == before
    network.run_for(4)
    assert made() - before == 2 * sum(row.high - row.low + 1 for row in HANDLERS.values())
