"""The same with a real Prometheus: its answers are the database's, and nothing is lost while it is stopped."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest
import requests

from controlplane.history.models import StoredSpan
from tests.support.ports import free_port

from .store_world import alike, world  # noqa: F401  # a fixture

PROMETHEUS = shutil.which("prometheus")
WITHIN_S = 30
HOUR = 3600

pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (apt-get install prometheus)")


class Prometheus:
    """On a port of this machine, with everything in one folder."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "prometheus.yml").write_text("global: {}\n")

    def start(self):
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    PROMETHEUS, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                    "--storage.tsdb.retention.time=400d", "--web.enable-remote-write-receiver",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            try:
                if requests.get(f"{self.url}/-/ready", timeout=1).status_code == 200:
                    return
            except requests.RequestException:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        pytest.fail(f"Prometheus did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(WITHIN_S)
            self.process = None


@pytest.fixture
def prometheus(tmp_path):
    found = Prometheus(tmp_path)
    found.start()
    yield found
    found.stop()


def test_its_answers_are_those_of_the_database_and_nothing_is_lost_while_it_is_stopped(world, prometheus):  # noqa: F811
    world.stored_in(prometheus.url)
    world.passes(900)
    world.writes()
    world.passes(5400)
    assert world.writes() > 0

    prometheus.stop()
    world.passes(2700)
    before = dict(StoredSpan.objects.values_list("name", "until"))
    assert world.writes() == 0
    assert dict(StoredSpan.objects.values_list("name", "until")) == before
    prometheus.start()
    assert world.writes() > 0
    assert StoredSpan.objects.count() == 4, "nothing was refused"

    world.stored_in("")
    expected = world.answers()
    world.stored_in(prometheus.url)
    world.forgets()
    found = world.answers()
    assert all(each["complete"] for each in found)
    assert alike(found, expected)
    world.stored_in("")
    assert not alike(world.answers(), expected), "the database alone does not have it"
