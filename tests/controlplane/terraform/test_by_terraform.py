"""The whole life by Terraform itself, or OpenTofu, where there is one: on PATH, or in var/.

It is marked `long`, and needs nothing but the program: no registry is asked, the provider is found in a folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from controlplane.instances.models import Instance
from controlplane.terraform.installing import install, launcher

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "deploy" / "terraform" / "examples"
PROGRAMS = ("terraform", "tofu")
PASSWORD = "one that no state may hold"
OF_THE_CALLER = ("SLUICE_", "TF_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def found(name):
    return shutil.which(name) or shutil.which(name, path=str(ROOT / "var"))


@dataclass
class Program:
    """In one folder, with the provider."""

    path: str
    folder: Path
    environment: dict
    worker: object
    overridden: bool = False

    def __call__(self, *arguments, status=0, **variables):
        given = [f"-var={name}={value}" for name, value in variables.items()]
        process = subprocess.Popen(
            [self.path, *arguments, *given],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            out = self._said(process)
        finally:
            process.kill()
            process.wait(10)
        print("$", Path(self.path).name, *arguments, *given)
        print(out)
        assert process.returncode == status, out
        return out

    def _said(self, process):
        while True:
            try:
                return process.communicate(timeout=0.05)[0]
            except subprocess.TimeoutExpired:
                self.worker()

    def state(self):
        return json.loads((self.folder / "terraform.tfstate").read_text())

    def can_write_only(self):
        version = json.loads(self("version", "-json"))["terraform_version"]
        return tuple(map(int, version.split("-")[0].split(".")[:2])) >= (1, 11)


@pytest.fixture(params=PROGRAMS)
def program(request, tmp_path, between, worker, alice, brokers):
    path = found(request.param)
    if path is None:
        pytest.skip(f"there is no {request.param}, neither on PATH nor in var/")

    def of(example):
        folder = tmp_path / example
        shutil.copytree(EXAMPLES / example, folder)
        mirror = tmp_path / "plugins"
        install(mirror)
        settings = tmp_path / "terraform.rc"
        settings.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n')
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(OF_THE_CALLER)}
        own = {
            "SLUICE_URL": between.url,
            "SLUICE_API_KEY": alice.key,
            "TF_CLI_CONFIG_FILE": str(settings),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "HOME": str(tmp_path),
        }
        made = Program(path, folder, {**kept, **own}, worker)
        made("init", "-no-color", "-input=false")
        return made

    return of


def test_the_whole_life(program, alice, worker):
    tool = program("whole")
    if not tool.can_write_only():
        text = (tool.folder / "main.tf").read_text()
        assert "write-only" in tool("plan", "-no-color", "-input=false", status=1, password=PASSWORD)
        lines = [line for line in text.splitlines() if "password_wo_version" not in line]
        (tool.folder / "main.tf").write_text("\n".join(lines).replace("password_wo  ", "password  "))
    asked = {"password": PASSWORD}
    quiet = ("-no-color", "-input=false")
    tool("plan", *quiet, "-out=kept", **asked)
    out = tool("apply", *quiet, "kept")
    assert "8 added, 0 changed, 0 destroyed" in out
    assert "bootstrap = " in out
    assert (PASSWORD in (tool.folder / "terraform.tfstate").read_text()) is not tool.can_write_only()

    tool("plan", *quiet, "-detailed-exitcode", **asked)  # status 2 would be a change

    (row,) = Instance.objects.unscoped("a test").all()
    address = f"/api/v1/instances/{row.id}"
    alice.api.patch(f"{address}/topics/lines", {"config": {"retention.ms": "1000"}})  # somebody in the console
    alice.api.delete(f"{address}/users/billing")
    drift = tool("plan", *quiet, "-detailed-exitcode", status=2, **asked)
    assert '"1000" -> "86400000"' in drift
    assert "sluice_user.billing will be created" in drift
    tool("apply", *quiet, "-auto-approve", **asked)

    resized = {**asked, "bandwidth_mib_per_s": 8, "partitions": 6, "protected": "true"}
    out = tool("apply", *quiet, "-auto-approve", **resized)
    assert "0 added, 2 changed, 0 destroyed" in out
    fewer = tool("plan", *quiet, **{**resized, "partitions": 3})
    assert "partitions" in fewer
    assert "forces replacement" in fewer

    out = tool("destroy", *quiet, "-auto-approve", "-target=sluice_instance.orders", status=1, **resized)
    assert "deletion_protection = false" in out
    row.refresh_from_db()
    assert row.state == "running"

    tool("apply", *quiet, "-auto-approve", **{**resized, "protected": "false"})
    tool("state", "rm", "sluice_instance.orders")
    tool(
        "import", *quiet, *(f"-var={name}={value}" for name, value in resized.items()), "sluice_instance.orders", row.id
    )
    out = tool("destroy", *quiet, "-auto-approve", **{**resized, "protected": "false"})
    assert "destroyed" in out
    row.refresh_from_db()
    assert row.state == "deleted"


def test_in_an_instance_of_somebody_else(program, alice, worker, between):
    wanted = {"name": "shared", "bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60, "whitelist": []}
    instance_id = alice.api.post("/api/v1/instances", wanted).data["id"]
    worker()
    with between.lock:
        alice.api.post(f"/api/v1/instances/{instance_id}/topics", {"name": "there-before", "partitions": 2})
    tool = program("existing")
    out = tool("apply", "-no-color", "-input=false", "-auto-approve")
    assert "1 imported, 2 added, 0 changed, 0 destroyed" in out
    tool("plan", "-no-color", "-input=false", "-detailed-exitcode")
    assert "of an example alone" not in out


def test_a_provider_that_is_being_worked_on(program, tmp_path, worker):
    """`dev_overrides`: the folder with the executable, and no `init`."""
    tool = program("existing")
    path = launcher(tmp_path / "being worked on" / "terraform-provider-sluice")
    settings = Path(tool.environment["TF_CLI_CONFIG_FILE"])
    settings.write_text(
        "provider_installation {\n"
        f'  dev_overrides {{\n    "terraform.local/sluice/sluice" = "{path.parent}"\n  }}\n  direct {{}}\n}}\n'
    )
    out = tool("plan", "-no-color", "-input=false", status=1)
    assert "development overrides" in out
    assert "None is called shared." in out
