"""How often someone may try to sign in: counted by account and by address, in the cache that all web processes share.

Of a person's proofs in sessions that organisations' providers have begun 20 are wrong in a day (`by_provider_begin`).
Of signing up and of what sends mails, by address: 20 in 15 minutes (`asked`).

================== ========= ===============================================================================================
counted by         in 15 min why
================== ========= ===============================================================================================
account, address   10        guessing one person's password; one stranger uses up none of the tries that others have
account            20        the same from many addresses
address            50        trying one password on many accounts; an office behind one address still gets in
account, browser   10        in place of all three, in a browser in which somebody has signed in before (`browser`)
================== ========= ===============================================================================================

Where no mail is sent, nobody can be mailed a link that lets a new browser try. There 20 of an account refuse nobody. From then on
each network waits after its own tries at the account: 1, 2, 4, … s, 30 s at most (`_slow`), and has 60 of them a day; of IPv6 it
is a /48 then, of which a site has one and a stranger seldom many. Nobody's tries make somebody elsewhere wait for longer than
that. Guesses at an account are so many a day as there are networks, 60 times; no count over all networks could be smaller
without keeping the person out who comes from a new one.

An attempt is counted before the password is looked at, so that parallel ones cannot slip through, and taken back when it
was right. Over the limit nothing is looked at, not even the right password: the answer tells nothing. Accounts that do not
exist are counted like others. Whoever is signed in, and every API key, goes on working while an account waits. What is refused
for one count is not counted by those below it.

Nobody keeps somebody else out by it: a browser that is known has counts of its own; one that is new becomes known by a link
that is mailed to the person (identity/browsers.py), or waits some seconds; and a passkey signs in beside all of it.

Windows follow the clock, so the time to wait is known. Where the cache does not answer, each process counts for itself
(`core/counts_here.py`), by the same windows and limits: whoever can make it slow guesses a few times as often, and no more.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from django.core.cache import cache

from controlplane.core import caching, kept
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.counts_here import CountsHere
from controlplane.core.errors import TooManyAttempts
from controlplane.mail import outbox

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG = logging.getLogger(__name__)
WINDOW_S = 15 * 60
MOST: Mapping[str, int] = {"address": 50, "account": 10, "everywhere": 20}
SIGN_IN, CODE, PROOF, PROOF_BY_SSO = "sign-in", "code", "proof", "proof-sso"
"""What is tried: each has its own count. Proofs in a session that an organisation's provider has begun are counted apart, for
each organisation: whom it signs in as somebody is not to use up the tries of that person elsewhere."""
MOST_BY_PROVIDERS, DAY_S = 20, 24 * 60 * 60
"""Wrong proofs of one person in a day, in the sessions of all providers together: each organisation's own count begins anew every
quarter of an hour, and its provider signs in as whom it likes. Elsewhere the person shows that it is them as ever."""
MOST_ASKED = 20
HERE = CountsHere()
"""Of this process: what is counted while the cache is away."""
SITES_PREFIX = 64
"""Of IPv6: a customer with one address has its whole network."""
SLOWED_PREFIX = 48
"""The same while an account is tried from many places: what a site is given."""
LONGEST_WAIT_S = 30
MOST_SLOWED_A_DAY = 60
"""Tries of a network at an account while that is tried from many places."""


def attempt_begin(
    *, email: str, address: str, what: str = SIGN_IN, browser: str = "", clock: Clock = SYSTEM_CLOCK
) -> None:
    """Count an attempt; `browser` names one that is known for this account. Raises TooManyAttempts."""
    now_s = int(clock.now().timestamp())
    keys = _keys(what, email, address, browser, now_s)
    for kind, key in keys.items():
        if _counted(key, now_s) > MOST[kind]:
            if kind == "everywhere" and not outbox.is_on():
                _slow(keys, email, address, now_s)
                continue
            LOG.warning("%s refused: too many attempts, counted by %s", what, kind)
            raise TooManyAttempts(WINDOW_S - now_s % WINDOW_S)


def _slow(keys: Mapping[str, str], email: str, address: str, now_s: int) -> None:
    """Let a try at an account that is tried from many places be looked at, or have it wait. Raises TooManyAttempts.

    What has to wait is taken back: whoever comes too early uses up nothing. Of parallel ones several may be looked at, within the
    limits that are counted.
    """
    name = _slowed_name(email, address)
    waits = _key(SIGN_IN, "wait", name, now_s, DAY_S)
    tries, until_s = kept.kept(waits, LOG, "nobody waits between tries") or (0, 0)
    if now_s < until_s:
        for key in keys.values():
            _taken_back(key)
        LOG.warning("%s has to wait: an account is tried from many places", SIGN_IN)
        left_s = until_s - now_s
        raise TooManyAttempts(left_s, f"others are trying this account: try again in {left_s} s")
    if _counted(_key(SIGN_IN, "slowed", name, now_s, DAY_S), now_s, DAY_S) > MOST_SLOWED_A_DAY:
        LOG.warning("%s refused: too many in a day of a network at an account that is tried from many places", SIGN_IN)
        raise TooManyAttempts(DAY_S - now_s % DAY_S)
    wait_s = min(2**tries, LONGEST_WAIT_S)
    kept.keep(waits, (min(tries + 1, MOST_SLOWED_A_DAY), now_s + wait_s), WINDOW_S, LOG, "nobody waits between tries")


def _slowed_name(email: str, address: str) -> str:
    return f"{email.strip().lower()} {_network(address, SLOWED_PREFIX)}"


def asked(*, what: str, address: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Count what an address asks for that makes an account or leads to a mail. Raises TooManyAttempts."""
    now_s = int(clock.now().timestamp())
    if _counted(_key(what, "address", _network(address), now_s), now_s) > MOST_ASKED:
        raise TooManyAttempts(WINDOW_S - now_s % WINDOW_S)


def attempt_succeeded(
    *,
    email: str,
    address: str,
    what: str = SIGN_IN,
    browser: str = "",
    keeps_wrong: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """The password was right: the account starts anew, and the address has not used this attempt.

    `keeps_wrong`: the account has not used this attempt either, and those before it count on. It is for a password beside which
    codes are counted: whoever knows it and guesses at the codes would begin anew with it as often as they like.
    """
    now_s = int(clock.now().timestamp())
    keys = _keys(what, email, address, browser, now_s)
    if keeps_wrong:
        for key in keys.values():
            _taken_back(key)
        return
    anew = [key for kind, key in keys.items() if kind != "address"]
    if "everywhere" in keys:
        anew.append(_key(SIGN_IN, "wait", _slowed_name(email, address), now_s, DAY_S))
    HERE.forget(anew)  # of a moment at which the cache was away
    with suppress(*kept.AWAY):
        cache.delete_many(anew)
    if "address" in keys:
        _taken_back(keys["address"])


def by_provider_begin(*, email: str, clock: Clock = SYSTEM_CLOCK) -> int:
    """Count a proof in a session that any provider has begun: how many there are today. Raises TooManyAttempts."""
    now_s = int(clock.now().timestamp())
    found = _counted(_by_provider(email, now_s), now_s, DAY_S)
    if found > MOST_BY_PROVIDERS:
        LOG.warning("%s refused: too many in a day in sessions of providers", PROOF_BY_SSO)
        raise TooManyAttempts(DAY_S - now_s % DAY_S)
    return found


def by_provider_succeeded(*, email: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """It was right, and is not counted. Those before it are: what the person does well gives nobody more tries."""
    _taken_back(_by_provider(email, int(clock.now().timestamp())))


def _by_provider(email: str, now_s: int) -> str:
    return _key(PROOF_BY_SSO, "day", email.strip().lower(), now_s, DAY_S)


def _keys(what: str, email: str, address: str, browser: str, now_s: int) -> dict[str, str]:
    """In the order in which they are counted.

    Hashed: an email may hold what a cache's key must not, and a cache needs no list of people.
    """
    account, network = email.strip().lower(), _network(address)
    if browser:
        named = {"account": f"{account} {browser}"}
    elif what == SIGN_IN:
        named = {"address": network, "account": f"{account} {network}", "everywhere": account}
    else:  # of somebody who has shown something already: nobody else comes to their count
        named = {"address": network, "account": account}
    return {kind: _key(what, kind, name, now_s) for kind, name in named.items()}


def _key(what: str, kind: str, name: str, now_s: int, window_s: int = WINDOW_S) -> str:
    return f"{what}:{kind}:{now_s // window_s}:{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:32]}"


def _network(address: str, prefix: int = SITES_PREFIX) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(int(found) >> (128 - prefix))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _counted(key: str, now_s: int, window_s: int = WINDOW_S) -> int:
    with caching.insisting():
        found = kept.counted(key, window_s, LOG, "sign-in attempts are counted in this process alone")
    return HERE.one_more(key, now_s=now_s, window_s=window_s) if found is None else found


def _taken_back(key: str) -> None:
    try:
        cache.decr(key)
    except (*kept.AWAY, ValueError):  # ValueError: the window has ended meanwhile, or it was counted here
        HERE.take_back(key)
