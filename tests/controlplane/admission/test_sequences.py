"""Seeded sequences of creations, resizes, failures and deletions, through services, rows and operations' own steps.

After each call what is sold is added up from the rows, by hand, and held against what operators allow.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from controlplane.admission import purchases
from controlplane.core.errors import SluiceError
from controlplane.core.models import Operation
from controlplane.instances import lifecycle, provisioning
from controlplane.instances.models import Instance
from tests.controlplane.conftest import WANTED

ROOM = {"bandwidth_mib_per_s": (20, 1.5), "storage_gib": (30, 1), "partitions": (120, 1), "connections": (3500, 2)}
CAPS = {"instances": 4, "bandwidth_mib_per_s": 50, "storage_gib": 60}
BANDWIDTHS, STORAGES, PARTITIONS = (1, 5, 7.3, 20, 0.1), (1, 10, 22.7), (30, 60, 100)
BROKERS = 3


def sizes(chance):
    return {
        "bandwidth_mib_per_s": chance.choice(BANDWIDTHS),
        "storage_gib": chance.choice(STORAGES),
        "partitions": chance.choice(PARTITIONS),
    }


def sold(rows):
    held = list(rows.exclude(state="deleted"))
    names = ("bandwidth_mib_per_s", "storage_gib", "partitions")
    # Decimal texts, as they were typed: what a person adds up.
    return {name: sum(Fraction(str(getattr(each, name))) for each in held) for name in names} | {"instances": len(held)}


def step(chance, organisations, rows):
    """One call, whoever's; whether it was admitted."""
    kind = chance.choice(["create", "create", "resize", "resize", "fail", "delete", "gone"])
    organisation = chance.choice(organisations)
    if kind == "create":
        purchases.instance_buy(organisation=organisation, actor="a", **{**WANTED, **sizes(chance)})
        return kind
    found = list(rows.exclude(state="deleted").order_by("pk"))
    if not found:
        return None
    instance = chance.choice(found)
    if kind == "resize":
        wanted = sizes(chance)
        changes = {name: wanted[name] for name in chance.sample(sorted(wanted), chance.randint(1, 3))}
        purchases.instance_change(
            organisation=instance.organisation, actor="a", instance_id=instance.id, changes=changes
        )
    elif kind == "delete":
        lifecycle.instance_delete(organisation=instance.organisation, actor="a", instance_id=instance.id)
    elif kind == "fail":
        provisioning.mark_failed(Operation(target=instance.id))
    elif instance.state == "deleting":
        provisioning.free_addresses(Operation(target=instance.id))
    return kind


@pytest.mark.parametrize("seed", range(6))
def test_no_sequence_oversells_the_cluster_or_an_organisation(alice, charlie, instance, installed, seed):
    installed(room=ROOM, caps=CAPS)
    chance = random.Random(seed)
    organisations = [alice.organisation, charlie.organisation]
    rows = Instance.objects.unscoped("a test")
    admitted, refused = 0, set()
    for _ in range(60):
        try:
            admitted += step(chance, organisations, rows) is not None
        except SluiceError as error:
            refused.add(error.code)
        in_all = sold(rows)
        for name, (per_broker, overcommit) in ROOM.items():
            most = Fraction(str(per_broker)) * Fraction(str(overcommit)) * BROKERS
            taken = 1000 * BROKERS * in_all["instances"] if name == "connections" else in_all[name]
            assert taken <= most, name
        for organisation in organisations:
            of_one = sold(rows.filter(organisation=organisation))
            assert all(of_one[name] <= cap for name, cap in CAPS.items())
    assert admitted > 20
    assert refused & {"cluster_full", "organisation_cap"}
