"""A master's two ports over TLS: who has to show what, and new certificates without a restart."""

from __future__ import annotations

import asyncio
import ssl
from itertools import count
from types import SimpleNamespace

import pytest

from quota.contracts.identity import CONTROL_PLANE, Keys, broker, credential, master
from quota.contracts.mastership import Mastership
from quota.master.config import ConfigError, load
from quota.master.election import Role
from quota.master.reading import HttpServer
from quota.master.secured import Secured
from quota.master.server import ReportServer
from quota.master.service import Service
from quota.tls.contexts import client_context
from quota.tls.current import Current
from quota.tls.shown import refusal
from quota.wire import Hello, frame
from tests.quota.samples import INSTANCE, report, spec
from tests.support.inside import Certificates, read

SECRET = "the secret"
NOW_MS = 1_800_000_000_000


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path / "tls")


@pytest.fixture
def current(certificates):
    return Current(str(certificates.folder("master-1")), master(1), read)


class Ports:
    """Both servers of a master."""

    def __init__(self, current):
        self.log = []
        self.sequence = count(1)
        service = Service(period_ms=200, lease_ms=600, now=asyncio.get_running_loop().time)
        service.set_specs({INSTANCE: spec()})
        service.won(1)
        self.service = service
        secured, keys = Secured(current, self.log.append), Keys(SECRET)
        self.reports = ReportServer(service, lambda: Role.ACTIVE, keys=keys, log=self.log.append, secured=secured)
        election = SimpleNamespace(role=Role.ACTIVE, current=None)

        async def learn(_instance):
            """Nothing more is known."""

        self.http = HttpServer(
            service, election, now=asyncio.get_running_loop().time, learn=learn, keys=keys, secured=secured
        )

    async def __aenter__(self):
        self.report_port = await self.reports.start("127.0.0.1", 0)
        self.http_port = await self.http.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        self.reports.stop()
        self.http.stop()
        await asyncio.sleep(0)

    async def reported(self, context, number, secret=""):
        """What a broker hears that says this number: grants, or nothing."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.report_port, ssl=context)
        except OSError:
            return b""
        try:
            writer.write(
                frame(Hello(secret, number).to_json()) + frame(report(number, sequence=next(self.sequence)).to_json())
            )
            return await asyncio.wait_for(reader.read(4), 10)
        except OSError:
            return b""
        finally:
            writer.transport.abort()

    async def read(self, context, path="/v1/brokers", bearer=None):
        """The status; 0: no connection."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.http_port, ssl=context)
            header = f"Authorization: {bearer}\r\n" if bearer else ""
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode())
            data = await asyncio.wait_for(reader.read(), 10)
            writer.transport.abort()
        except OSError:
            return 0
        return int(data.split(b" ")[1]) if data else 0


def run(current, scenario):
    async def all_of_it():
        async with Ports(current) as ports:
            return await scenario(ports)

    return asyncio.run(all_of_it())


def trusting(certificates):
    return ssl.create_default_context(cadata=certificates.material("operator").authorities)


def test_a_broker_reports_as_who_its_certificate_says_and_needs_no_credential(certificates, current):
    async def scenario(ports):
        assert await ports.reported(certificates.context("broker-1"), 1)
        assert await ports.reported(certificates.context("broker-2"), 1) == b""
        assert await ports.reported(certificates.context("controlplane"), 1) == b""
        assert ports.service.reports_total == 1
        assert any("says that it is broker 1, and its certificate is broker-2's" in line for line in ports.log)

    run(current, scenario)


def test_a_credential_without_a_certificate_is_worth_nothing_at_the_report_port(certificates, current, tmp_path):
    others = Certificates(tmp_path / "others")
    theirs = client_context(others.material("broker-1"), checks_host=False)
    theirs.load_verify_locations(cadata=certificates.material("operator").authorities)

    async def scenario(ports):
        secret = credential(SECRET, "broker-1")
        for context in (trusting(certificates), theirs, None):
            assert await ports.reported(context, 1, secret) == b""
        assert ports.service.reports_total == 0

    run(current, scenario)


@pytest.mark.parametrize(
    ("name", "path", "status"),
    [
        ("controlplane", "/v1/brokers", 200),
        ("operator", "/v1/brokers", 200),
        ("monitoring", "/metrics", 200),
        ("monitoring", "/v1/brokers", 401),
        ("broker-1", "/v1/brokers", 401),
        ("metering", "/metrics", 401),
        (None, "/v1/brokers", 401),
        (None, "/health", 200),
    ],
)
def test_who_reads_what_by_a_certificate(certificates, current, name, path, status):
    context = certificates.context(name) if name else trusting(certificates)
    assert run(current, lambda ports: ports.read(context, path)) == status


def test_a_token_is_as_good_as_a_certificate_where_there_is_none(certificates, current):
    bearer = Keys(SECRET).bearer(CONTROL_PLANE)
    assert run(current, lambda ports: ports.read(trusting(certificates), bearer=bearer)) == 200
    assert run(current, lambda ports: ports.read(None, bearer=bearer)) == 0


def test_the_authority_is_replaced_without_a_restart(certificates, current, tmp_path):
    def other():
        return client_context(certificates.material("broker-1"), checks_host=True)

    async def scenario(ports):
        before = other()
        certificates.store.replace("the next CA")
        certificates.store.renew()
        renewed = other()  # believes both authorities, and shows what the new one has issued
        assert await ports.reported(before, 1)
        assert await ports.reported(renewed, 1) == b""  # the master has not looked yet
        (said,) = current.look(NOW_MS)[:1]
        assert "is read again" in said
        assert await ports.reported(before, 1) == b""  # it does not believe the new authority
        assert await ports.reported(renewed, 1)
        certificates.store.forget()
        current.look(NOW_MS)
        assert await ports.reported(other(), 1)
        assert await ports.read(client_context(certificates.material("operator"), checks_host=True)) == 200
        theirs = client_context(certificates.material("broker-1"), checks_host=True)
        reader, writer = await asyncio.open_connection("127.0.0.1", ports.report_port, ssl=theirs)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        del reader
        assert refusal(shown, master(1)) is None
        assert refusal(shown, broker(1)) is not None

    run(current, scenario)


def test_where_the_url_is_one_of_https_reports_are_over_tls_too():
    def mastership(scheme):
        return Mastership(1, "10.0.0.1:20021", f"{scheme}://10.0.0.1:20031", 3)

    assert mastership("https").is_secured
    assert not mastership("http").is_secured
    assert Mastership.from_json(mastership("https").to_json()).is_secured


def test_what_a_masters_file_may_say_of_it(tmp_path, certificates):
    secrets = tmp_path / "secrets.json"
    secrets.write_text('{"cluster_secret": "s"}')
    folder = certificates.folder("master-1")

    def loaded(number=1, **members):
        lines = {"id": number, "report": "127.0.0.1:1", "http": "127.0.0.1:2", "zookeeper": "z:1"}
        lines |= {"secrets_file": str(secrets)} | members
        path = tmp_path / "master.toml"
        path.write_text("[master]\n" + "".join(f"{name} = {value!r}\n" for name, value in lines.items()))
        return load(path)

    assert loaded().tls is None
    assert loaded(internal_security="ssl", tls_folder=str(folder)).tls is not None
    for wrong in (
        {"internal_security": "ssl"},
        {"internal_security": "ssl_said", "tls_folder": str(folder)},
        {"internal_security": "ssl", "tls_folder": str(tmp_path)},
        {"internal_security": "ssl", "tls_folder": str(folder), "number": 2},
    ):
        with pytest.raises(ConfigError):
            loaded(**wrong)
