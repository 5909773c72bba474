"""`sluice-clients` in a fresh virtual environment, where there is nothing else of the project, and no Django."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from dataplane.clients.settings import addresses
from tests.integration.clients import create_topic, produce, read_all
from tests.support.processes import SECRET
from tests.support.waiting import wait_for
from wheels.build import NEEDED, ROOT, build

pytestmark = pytest.mark.integration
README = ROOT / "wheels" / "clients.md"
OPERATOR = f"""
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
operator = {{
    "zk.access": access_by_secret([{SECRET!r}], Party.OPERATORS),
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.username": "operator",
    "sasl.password": credential({SECRET!r}, "operator"),
}}
"""


class Installed:
    """The environment."""

    def __init__(self, folder):
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"

    def run(self, text, **more):
        """A program there, in a folder where there is nothing to be imported."""
        command = [str(self.python), "-I", "-c", text]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=100, check=False, **more
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def script(self, *words):
        return [str(self.python.with_name("sluice-mirror")), *map(str, words)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel, by pip, and without a network: what it needs is copied from here."""
    found = Installed(tmp_path_factory.mktemp("wheel"))
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(found.folder / "venv")], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"this Python makes no virtual environment: {made.stdout}{made.stderr}")
    site = Path(found.run("import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    for name in NEEDED:
        for file in distribution(name).files or ():
            if ".." not in file.parts and Path(file.locate()).is_file():
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), site / file)
    pip = [str(found.python), "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run([*pip, str(build(found.folder))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return found


def test_it_is_there_alone(installed):
    out = installed.run(
        "import importlib.util, dataplane.clients.producer, dataplane.clients.simple_consumer\n"
        "import dataplane.clients.connector, dataplane.clients.mirror.commands\n"
        "names = ('django', 'confluent_kafka', 'controlplane', 'dataplane.broker', 'dataplane.clients.console')\n"
        "print([name for name in names if importlib.util.find_spec(name)], dataplane.__file__)\n"
    )
    others, where = out.split()
    assert others == "[]"
    assert Path(where).is_relative_to(installed.folder)


def test_the_examples_of_its_readme_run(installed, cluster, tenant):
    create_topic(tenant, "page-views", 4)
    host, port = addresses(tenant.bootstrap)[0]
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    *for_tenants, by_zookeeper = blocks
    text = "\n".join(for_tenants).replace("127.0.0.1:9092", tenant.bootstrap)
    assert '[("127.0.0.1", 9092)]' in text
    installed.run(text.replace('[("127.0.0.1", 9092)]', repr([(host, port)])))
    values = [value for some in read_all(tenant, "page-views").values() for value in some]
    assert len(values) == 103
    assert {b"/index.html", b"/about.html", b"/", b'{"page": 99}'} <= set(values)

    by_zookeeper = by_zookeeper.replace("127.0.0.1:2181", cluster._zookeeper.hosts)
    by_zookeeper = by_zookeeper.replace("page-views", f"{tenant.key}.page-views")
    assert "from_properties(settings)" in by_zookeeper
    installed.run(
        OPERATOR + by_zookeeper.replace("from_properties(settings)", "from_properties({**settings, **operator})")
    )


def test_its_command_mirrors(installed, new_tenant, tmp_path):
    old, new = new_tenant(), new_tenant()
    create_topic(old, "orders", 2)
    produce(old, "orders", [b"%d" % number for number in range(50)])
    file = tmp_path / "mirror.toml"
    file.write_text(
        f'[target]\nname = "new"\nbootstrap = "{new.bootstrap}"\n'
        f'[[sources]]\nname = "old"\nbootstrap = "{old.bootstrap}"\ntopics = "orders"\n'
        "[mirror]\nsync_s = 0.3\ncheckpoint_s = 0.1\n"
    )

    def is_equal():
        done = subprocess.run(installed.script(file, "compare"), capture_output=True, timeout=60, check=False)
        return done.returncode == 0

    running = subprocess.Popen(
        installed.script(file), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(is_equal, 60, "the target to be equal")
        running.terminate()
        assert running.wait(30) == 0
    finally:
        running.kill()
        running.wait()
