"""From plaintext to TLS in steps: brokers one step apart understand each other."""

from itertools import pairwise

import pytest

from quota.contracts.internal_security import InternalSecurity, internal_security


def hears(listener, other):
    """Whether a broker that connects as `other` does is understood."""
    return listener.has_tls if other.connects_with_tls else listener.takes_plaintext


def test_brokers_of_the_same_step_or_one_apart_understand_each_other():
    steps = list(InternalSecurity)
    for step in steps:
        assert hears(step, step)
    for one, next_one in pairwise(steps):
        assert hears(one, next_one)
        assert hears(next_one, one)


def test_two_steps_at_once_are_too_many():
    assert not hears(InternalSecurity.SASL_PLAINTEXT, InternalSecurity.SSL_SAID)
    assert not hears(InternalSecurity.SSL, InternalSecurity.SSL_ACCEPTED)


def test_what_is_none_is_refused_with_what_there_is():
    assert internal_security("ssl") is InternalSecurity.SSL
    with pytest.raises(ValueError, match="sasl_plaintext, ssl_accepted, ssl_said, ssl"):
        internal_security("tls")
