"""The forms in `deploy/spark`: Spark itself reads them, the jobs take their environment, and what they name exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from controlplane.env import ROOT
from controlplane.metering.pipeline.schedule import JOBS
from controlplane.metering.pipeline.settings import Settings
from controlplane.spark.jars import DELTA, KAFKA_SOURCE
from controlplane.spark.session import prepare_java

pytestmark = pytest.mark.integration
FORMS = ROOT / "deploy" / "spark"


def properties(file: Path) -> dict[str, str]:
    lines = (line.strip() for line in file.read_text().splitlines())
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def variables_of_yarn() -> dict[str, str]:
    return dict(line.split("=", 1) for line in (FORMS / "yarn" / "sluice.env").read_text().splitlines())


def documents(name: str) -> list[dict]:
    return list(yaml.safe_load_all((FORMS / "kubernetes" / name).read_text()))


def variables_of_kubernetes() -> dict[str, str]:
    return next(each["data"] for each in documents("drivers.yaml") if each["kind"] == "ConfigMap")


@pytest.mark.parametrize(("kind", "master"), [("yarn", "yarn"), ("kubernetes", "k8s://https://kubernetes.default.svc")])
def test_spark_submit_reads_the_configuration_as_it_is_meant(kind, master, tmp_path):
    job = ROOT / "controlplane" / "metering" / "pipeline" / "jobs" / "quota_report.py"
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "HADOOP_", "YARN_", "PYSPARK_"))
    } | {"SPARK_CONF_DIR": str(FORMS / kind), "JAVA_HOME": str(prepare_java(tmp_path))}
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    # A master of its own makes it go no further than to read: "local" is refused for what follows.
    said = subprocess.run(
        [str(submit), "--verbose", "--deploy-mode", "cluster", "--master", "local", "--conf", "spark.jars.packages=", str(job)],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    told = said.stdout + said.stderr
    assert f"Using properties file: {FORMS / kind / 'spark-defaults.conf'}" in told
    found = dict(re.findall(r"\(?(spark\.[\w.]+)[,=] ?([^\n)]*)", told))
    wanted = properties(FORMS / kind / "spark-defaults.conf")
    assert wanted["spark.master"] == master
    for name, value in wanted.items():
        if name not in ("spark.master", "spark.submit.deployMode", "spark.jars.packages"):
            assert found.get(name, "").strip() == value, (name, told)


@pytest.mark.parametrize("kind", ["yarn", "kubernetes"])
def test_the_jars_are_those_that_the_jobs_are_tested_with(kind):
    assert properties(FORMS / kind / "spark-defaults.conf")["spark.jars.packages"].split(",")[:2] == [
        KAFKA_SOURCE,
        DELTA,
    ]


@pytest.mark.parametrize("variables", [variables_of_yarn, variables_of_kubernetes])
def test_the_jobs_take_the_environment(variables):
    told = {"DATABASE_URL": "postgresql://sluice@database.example.net/sluice", **variables()}
    settings = Settings.read(told)
    assert len(settings.brokers.split(",")) == 3
    assert settings.kafka_options()["kafka.security.protocol"] == "SSL"
    assert settings.lake == told["SLUICE_LAKE"]


def test_what_the_forms_name_is_there():
    pods = [each for each in documents("drivers.yaml") if each["kind"] == "StatefulSet"]
    assert [each["metadata"]["name"] for each in pods] == ["sluice-usage", "sluice-runner"]
    for each in pods:
        name, pod = each["metadata"]["name"], each["spec"]["template"]["spec"]
        (driver,) = pod["containers"]
        submit = next(one["value"] for one in driver["env"] if one["name"] == "SLUICE_SPARK_SUBMIT")
        assert shlex.split(submit)[-1] == f"spark.kubernetes.driver.pod.name={name}-0"
        mounted = {mount["name"] for mount in driver["volumeMounts"]}
        claimed = {claim["metadata"]["name"] for claim in each["spec"]["volumeClaimTemplates"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]} | claimed
        assert pod["serviceAccountName"] in {one["metadata"]["name"] for one in documents("access.yaml")}
    words = " ".join(word for each in pods for word in each["spec"]["template"]["spec"]["containers"][0]["command"])
    (job,) = re.findall(r"/opt/sluice/(\S+\.py)", words)
    (module,) = re.findall(r"(controlplane(?:\.\w+)+)", words.replace(job, ""))
    assert (ROOT / job).is_file()
    assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    (executor,) = documents("executor.yaml")
    wanted = properties(FORMS / "kubernetes" / "spark-defaults.conf")
    assert executor["spec"]["containers"][0]["name"] == wanted["spark.kubernetes.executor.podTemplateContainerName"]


def test_the_page_names_every_program_and_no_other():
    text = (FORMS / "README.md").read_text()
    named = {word if word.startswith("controlplane") else f"controlplane/metering/pipeline/{word}"
             for word in re.findall(r"((?:controlplane|jobs)/[\w/]+\.py)", text)}  # fmt: skip
    assert [path for path in named if not (ROOT / path).is_file()] == []
    modules = re.findall(r"-m (controlplane(?:\.\w+)+)", text)
    assert [module for module in modules if find_spec(module) is None] == []
    texts = {path: path.read_text() for path in (ROOT / "controlplane").rglob("*.py")}
    programs = {str(path.relative_to(ROOT)) for path, each in texts.items() if "pyspark" in each and "__main__" in each}
    assert programs == named, "programs of Spark"
    files = re.findall(r"`([\w./-]+\.(?:conf|env|yaml))`", text)
    folders = [FORMS, *(path for path in FORMS.iterdir() if path.is_dir())]
    assert [name for name in files if not any((folder / name).is_file() for folder in folders)] == []
    tests = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert [name for name in tests if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("job", [job for job in JOBS.values() if job.daily_at_ms is not None], ids=lambda job: job.name)
def test_a_daily_job_is_started_by_its_path_with_the_words_of_the_runner(job, tmp_path):
    path = find_spec(job.module).origin
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, path, "--run", "7", "--day", "2026-11-21", "--help"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert {"--run", "--day"} <= set(re.findall(r"--\w+", said.stdout))
