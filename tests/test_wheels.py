"""`sluice-clients`: what is in the wheel, what it says of itself, and that nothing comes into it unseen."""

from __future__ import annotations

import base64
import hashlib
import zipfile

import pytest

from dataplane.clients.connection import _SOFTWARE
from wheels.build import NEEDED, ROOT, BuildError, build, main, modules, requirements


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    with zipfile.ZipFile(build(tmp_path_factory.mktemp("wheel"))) as opened:
        yield opened


def text(wheel, name):
    return next(wheel.read(one).decode() for one in wheel.namelist() if one.endswith(f".dist-info/{name}"))


def test_it_has_the_clients_and_what_they_need_and_nothing_of_a_service():
    found = modules()
    for name in (
        "producer.producer",
        "simple_consumer",
        "connector.connector",
        "mirror.__main__",
        "mirror.transacting",
    ):
        assert f"dataplane.clients.{name}" in found
    assert {"dataplane", "dataplane.protocol.messages.produce", "dataplane.records.batch", "quota"} <= set(found)
    assert {"quota.contracts.zookeeper_login", "quota.zookeeper.client", "quota.contracts.identity"} <= set(found)
    assert not [
        name for name in found if name.startswith(("dataplane.clients.console", "controlplane", "quota.master"))
    ]
    assert {name.split(".")[1] for name in found if name.startswith("dataplane.")} == {"clients", "protocol", "records"}


def test_every_file_is_listed_with_its_digest(wheel):
    rows = dict(line.split(",", 1) for line in text(wheel, "RECORD").splitlines())
    assert set(rows) == set(wheel.namelist())
    for name in wheel.namelist():
        data = wheel.read(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert rows[name] == ("," if name.endswith("/RECORD") else f"sha256={digest},{len(data)}")


def test_it_says_what_it_is_and_needs(wheel):
    lines = text(wheel, "METADATA").splitlines()
    assert lines[:3] == ["Metadata-Version: 2.1", "Name: sluice-clients", f"Version: {_SOFTWARE[1]}"]
    needed = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    assert [one.partition(">=")[0] for one in needed] == list(NEEDED)
    assert _SOFTWARE[0] == "sluice-clients"
    assert "# sluice-clients" in lines
    assert "sluice-mirror = dataplane.clients.mirror.__main__:run" in text(wheel, "entry_points.txt")
    assert "Tag: py3-none-any" in text(wheel, "WHEEL")


def test_the_same_source_makes_the_same_bytes(tmp_path):
    first, second = (build(tmp_path / name) for name in ("first", "second"))
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_what_a_client_imports_has_to_be_needed(tmp_path):
    clients = tmp_path / "dataplane" / "clients"
    clients.mkdir(parents=True)
    for file in (clients / "__init__.py", clients.parent / "__init__.py"):
        file.write_text("")
    (clients / "new.py").write_text("import json\n\ndef load():\n    from kazoo.client import KazooClient\n")
    assert list(modules(tmp_path)) == ["dataplane", "dataplane.clients", "dataplane.clients.new"]
    (clients / "new.py").write_text("def load():\n    from django.conf import settings\n")
    with pytest.raises(BuildError, match=r"dataplane/clients/new\.py imports django\.conf"):
        modules(tmp_path)


def test_requirements_are_at_least_what_is_pinned():
    assert requirements("cramjam==2.1 \\\n    --hash=x\ncrc32c==2.9.post0 \\\nkazoo==2.11.0\nother==1") == [
        "cramjam>=2.1",
        "crc32c>=2.9.post0",
        "kazoo>=2.11.0",
    ]
    with pytest.raises(BuildError, match="kazoo: not pinned"):
        requirements("cramjam==2.1\ncrc32c==2.9")


def test_the_command_says_where_the_file_is(tmp_path, capsys):
    assert main(["--into", str(tmp_path / "made")]) == 0
    (made,) = (tmp_path / "made").iterdir()
    assert capsys.readouterr().out.strip() == str(made)
    assert made.name.startswith("sluice_clients-")
    assert (ROOT / "wheels" / "clients.md").read_text().count("```python") == 4
