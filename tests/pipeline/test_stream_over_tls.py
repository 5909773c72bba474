"""The stream job against a broker that speaks TLS, with the certificate of `metering`; and when these are replaced."""

from __future__ import annotations

import pytest

from controlplane.metering import selectors
from controlplane.stack.metering import absence
from tests.support.inside import Certificates
from tests.support.spark_home import spark_home
from tests.support.waiting import wait_for

from .stream import losses, status
from .test_killed_stream import METERED_WITHIN_S, World

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # as of the other stream
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path / "tls")


@pytest.fixture
def secured(tmp_path, database_file, django_db_blocker, monkeypatch, certificates):
    with spark_home() as home, django_db_blocker.unblock():
        made = World(home, tmp_path, database_file, certificates)
        monkeypatch.setattr(selectors, "connection", made.database)
        try:
            made.start()
            yield made
        finally:
            made.stop()


@pytest.mark.long  # two minutes
def test_what_is_metered_over_tls_goes_on_with_another_authority(secured, certificates):
    def metered():
        return secured.totals() == (secured.counted, secured.counted)

    secured.traffic(3)
    wait_for(metered, METERED_WITHIN_S, "the first traffic to be metered")
    for step in (
        lambda: certificates.store.replace("the next CA"),
        certificates.store.renew,
        certificates.store.forget,
    ):
        read = secured.broker.log.read_text().count("is read again")
        begun = secured.job.log.read_text().count("is another one")
        step()
        wait_for(lambda: secured.broker.log.read_text().count("is read again") > read, 40, "the broker to see it")  # noqa: B023
        wait_for(lambda: secured.job.log.read_text().count("is another one") > begun, 60, "the job to see it")  # noqa: B023
        secured.traffic(1)
        wait_for(metered, METERED_WITHIN_S, "the traffic after it to be metered")
    secured.restart_broker()  # every connection is a new one, and shows what the new authority has issued
    secured.traffic(2)
    wait_for(metered, METERED_WITHIN_S, "the traffic after the restart to be metered")
    assert losses(secured.database) == []
    assert status(secured.database)["bad"] == 0
