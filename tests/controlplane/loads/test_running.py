"""A run as a process: its words and files, what it reports, and how the runner starts, watches and ends it.

The program is a stand-in that the test tells what to do; the real one runs in tests/lake/test_loads_of_tenants.py.
"""

from __future__ import annotations

import json
import shlex
import stat
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from controlplane.clusters.coordination import LiveBroker
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.sealed import sealed
from controlplane.instances.models import Instance, InstanceState
from controlplane.lake.copy_table import Request as CopyRequest
from controlplane.lake.request import Request
from controlplane.lake.verify import properties_of
from controlplane.loads import claiming, running
from controlplane.loads.models import Load, LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.runner import Runner, work
from controlplane.loads.serializers import reason_of
from controlplane.loads.services import run_ask
from quota.contracts.namespace import instance_key
from quota.contracts.on_behalf import CLIENT_ID
from tests.controlplane.fakes import ManualClock
from tests.support.waiting import wait_for

from .rows import LONG_AGO, load_row

PROGRAM = """\
import json, os, pathlib, sys, time
does = json.loads(pathlib.Path(sys.argv[1]).read_text())
module, words = sys.argv[2], sys.argv[3:]
report = pathlib.Path(words[words.index("--report") + 1])
folder = report.parent
files = {each.name: each.read_text() for each in folder.iterdir()}
saw = {"words": words, "files": files, "pid": os.getpid(), "environment": dict(os.environ)}
pathlib.Path(does["saw"]).write_text(json.dumps(saw))
for members in does["reports"]:
    report.write_text(json.dumps(members))
until = time.monotonic() + 60
while does["hangs"] and time.monotonic() < until:
    if does["hangs"] == "until it is told" and (folder / "until").exists():
        report.write_text(json.dumps({"status": 0, "says": "1 row", "rows": 1, "is_whole": False}))
        os._exit(0)
    time.sleep(0.02)
os._exit(does["status"])
"""
DONE = {
    "status": 0,
    "says": "5 rows",
    "topic_id": "abc",
    "rows": 5,
    "bytes": 70,
    "commits": 1,
    "problems": 2,
    "gaps": ["a gap"],
}


@pytest.fixture(autouse=True)
def cluster(monkeypatch):
    """Brokers and a credential, without a cluster."""
    monkeypatch.setattr(running.brokers, "brokers", lambda _address: [LiveBroker(1, "10.0.0.1", 9000)])
    monkeypatch.setattr(running, "to_brokers", lambda: Identification('cre"dential'))


@pytest.fixture
def clock():
    return ManualClock()


class Stand:
    """The runner with a program that does what it is told to."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.home, self.clock = folder / "runs", clock
        self._orders, self._saw = folder / "orders.json", folder / "saw.json"
        program = folder / "program.py"
        program.write_text(PROGRAM)
        self.runner = self.another(program)
        self.program = program

    def another(self, program: Path | None = None) -> Runner:
        submit = shlex.join([sys.executable, str(program or self.program), str(self._orders)])
        return Runner(home=self.home, submit=submit, at_once=1)

    def does(self, *reports, status=0, hangs=False) -> None:
        self._saw.unlink(missing_ok=True)
        members = {"reports": reports, "status": status, "hangs": hangs, "saw": str(self._saw)}
        self._orders.write_text(json.dumps(members))

    def saw(self):
        wait_for(self._saw.exists, 20, "the program")
        wait_for(lambda: self._saw.read_text().endswith("}"), 5, "its words")
        return json.loads(self._saw.read_text())

    @property
    def was_started(self) -> bool:
        return self._saw.exists()

    def turn(self) -> None:
        self.runner.turn(self.clock)

    def until(self, ended) -> LoadRun:
        def is_there() -> bool:
            self.turn()
            return last().state == ended

        wait_for(is_there, 20, f"a run that has {ended}")
        return last()


@pytest.fixture
def stand(tmp_path, clock, db):
    made = Stand(tmp_path, clock)
    made.does(DONE)
    yield made
    made.runner.close()


def last() -> LoadRun:
    return LoadRun.objects.unscoped("a test").order_by("-pk").first()


def ask(load, asked=Asked(), *, at=LONG_AGO):  # noqa: B008  # it is frozen
    return run_ask(load, asked_by="alice", asked=asked, now=at)


# --- words and files ----------------------------------------------------------------------------------------------------


def test_the_program_reads_on_behalf_of_the_tenant_and_no_secret_is_among_its_words(instance, stand):
    ask(load_row(instance), Asked(offsets={0: (3, 9)}))
    stand.turn()
    saw = stand.saw()
    request = Request.read(saw["words"])
    assert request.topic == f"{instance_key(instance.id)}.orders"
    assert (request.topic_named, request.brokers, request.schema) == ("orders", "10.0.0.1:9000", "raw")
    assert {partition: (span.first, span.end) for partition, span in request.offsets.items()} == {0: (3, 9)}
    properties = properties_of(saw["files"]["client.properties"])
    assert properties["client.id"] == CLIENT_ID
    assert 'password="cre\\\\"dential"' in properties["sasl.jaas.config"]
    assert "dential" not in " ".join(saw["words"])
    stand.until(RunState.SUCCEEDED)


def test_the_program_has_nothing_of_the_environment_that_names_secrets(instance, stand, monkeypatch):
    for name in (
        "DATABASE_URL",
        "REDIS_URL",
        "SLUICE_SECRETS_FILE",
        "SLUICE_ENCRYPTION_KEYS_FILE",
        "AWS_SECRET_ACCESS_KEY",
    ):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("SPARK_MASTER", "local[2]")
    ask(load_row(instance))
    stand.turn()
    environment = stand.saw()["environment"]
    assert "secret" not in environment.values()
    assert environment["SPARK_MASTER"] == "local[2]"
    assert environment["SPARK_LOCAL_DIRS"].startswith(str(stand.home)), "it goes with the run's folder"


def test_files_are_for_the_runner_s_user_alone(instance, stand):
    stand.does(hangs=True)
    ask(load_row(instance, schema="id BIGINT", skip_expired=True))
    stand.turn()
    request = Request.read(stand.saw()["words"])
    assert request.skip_expired
    assert Path(request.schema).read_text() == "id BIGINT"
    assert stat.S_IMODE(request.properties.stat().st_mode) == 0o600
    assert stat.S_IMODE(request.properties.parent.stat().st_mode) == 0o700
    stand.runner.close()
    assert not request.properties.parent.exists()


def test_what_was_loaded_of_each_partition_is_kept_and_added_up_over_turns(instance, stand):
    """A run that gave way has loaded some before."""
    run = ask(load_row(instance))
    old = {"first": 3, "end": 9, "rows": 6, "checksum": "f" * 16}
    LoadRun.objects.unscoped("a test").filter(pk=run.pk).update(partitions={"0": old})
    new = {"0": {"first": 9, "end": 12, "rows": 3, "checksum": "0" * 15 + "3"}, "1": {**old, "rows": 5}}
    stand.does({**DONE, "partitions": new})
    assert stand.until(RunState.SUCCEEDED).partitions == {
        "0": {"first": 3, "end": 12, "rows": 9, "checksum": "0" * 15 + "2"},  # modulo 2^64
        "1": {**old, "rows": 5},
    }


def test_a_load_of_parquet_replaces_nothing_and_is_copied_without_a_log(bucket_load, stand, monkeypatch):
    copies = Copies(monkeypatch, {"status": 0, "says": "copied", "version": 0})
    Load.objects.unscoped("a test").update(format="parquet")
    ask(bucket_load, Asked(offsets={0: (3, 9)}))
    stand.until(RunState.SUCCEEDED)
    assert Request.read(stand.saw()["words"]).once
    assert CopyRequest.read(copies.words).is_plain
    Load.objects.unscoped("a test").update(format="delta")
    ask(bucket_load)
    stand.until(RunState.SUCCEEDED)
    assert not Request.read(stand.saw()["words"]).once
    assert not CopyRequest.read(copies.words).is_plain


# --- copies in buckets --------------------------------------------------------------------------------------------------


class Copies:
    """Stands for the program that tries the bucket, and copies: what it is started with, and what it reports."""

    def __init__(self, monkeypatch, report, status=0, trial=MappingProxyType({"status": 0, "says": "looking"})):
        self.words, self.trials = [], []
        kept = running.Kept

        def started(command, **how):
            if running.COPY not in command:
                return kept(command, **how)
            words = command[command.index(running.COPY) + 1 :]
            is_trial = "--try" in words
            if is_trial:
                self.trials.append(words)
            else:
                self.words = words
            says, ends = (dict(trial), trial["status"]) if is_trial else (report, status)
            self.credentials = Path(words[words.index("--credentials") + 1]).read_text()
            Path(words[words.index("--report") + 1]).write_text(json.dumps(says))
            return kept([sys.executable, "-c", f"raise SystemExit({ends})"], **how)

        monkeypatch.setattr(running, "Kept", started)


@pytest.fixture
def bucket_load(instance):
    return load_row(
        instance, "load-000000000002", kind="bucket", bucket="events-1", path="lake/orders", region="eu-central-1",
        access_key="AK", secret_key=sealed(Load, "secret_key", b"very-secret", id="load-000000000002"),
    )  # fmt: skip


def test_the_table_is_in_a_folder_of_the_service_and_the_bucket_gets_a_copy(bucket_load, stand, monkeypatch):
    copies = Copies(monkeypatch, {"status": 0, "says": "3 versions are in the bucket", "version": 2})
    ask(bucket_load)
    run = stand.until(RunState.SUCCEEDED)
    assert Request.read(stand.saw()["words"]).destination == bucket_load.folder
    words = " ".join(copies.words).replace("=", " ", 2).split()  # --path=… and --region=…
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given.items() >= {
        "--from": bucket_load.folder, "--bucket": "events-1", "--path": f"lake/orders/{bucket_load.pk}",
        "--region": "eu-central-1",
    }.items()  # fmt: skip
    assert not {"--after", "--endpoint"} & set(given)
    assert copies.credentials == "access_key=AK\nsecret_key=very-secret\n"
    assert "very-secret" not in " ".join(copies.words)
    assert (run.says, run.row_count) == ("5 rows; 3 versions are in the bucket", 5)
    bucket_load.refresh_from_db()
    assert bucket_load.copied_version == 2
    ask(bucket_load)
    stand.until(RunState.SUCCEEDED)
    assert copies.words[copies.words.index("--after") + 1] == "2"


def test_a_bucket_that_refuses_fails_the_run_and_what_was_loaded_stays_loaded(bucket_load, stand, monkeypatch):
    Copies(monkeypatch, {"status": 1, "says": "the bucket refuses the key", "version": 1}, status=1)
    ask(bucket_load)
    run = stand.until(RunState.FAILED)
    assert (run.says, run.exit_status, run.row_count) == ("the bucket refuses the key", 1, 5)
    bucket_load.refresh_from_db()
    assert (bucket_load.copied_version, bucket_load.failures) == (1, 1)


def test_a_bucket_is_tried_before_anything_is_read(bucket_load, stand, monkeypatch):
    trial = {"status": 8, "says": "the bucket events-1 does not exist"}
    copies = Copies(monkeypatch, {}, trial=trial)
    ask(bucket_load)
    run = stand.until(RunState.FAILED)
    assert (run.says, run.exit_status, run.row_count) == ("the bucket events-1 does not exist", 8, 0)
    assert reason_of(run) == "no_bucket"
    assert not stand.was_started, "what Spark reads is charged to the tenant"
    assert CopyRequest.read(copies.trials[0]).is_trial
    assert "--after" not in copies.trials[0]


def test_what_runs_before_have_loaded_and_this_one_has_copied_is_said_first(bucket_load, stand, monkeypatch):
    Copies(monkeypatch, {"status": 0, "says": "copied up to version 0: 1 file, 9 bytes", "version": 0})
    stand.does({"status": 0, "says": "nothing to load: the table has all that the topic has"})
    ask(bucket_load)
    assert stand.until(RunState.SUCCEEDED).says == "copied up to version 0: 1 file, 9 bytes; loaded by runs before"
    ask(bucket_load)
    run = stand.until(RunState.SUCCEEDED)
    assert run.says.startswith("nothing to load"), "the bucket had it already"


# --- how it goes --------------------------------------------------------------------------------------------------------


def test_a_run_that_ends_well_says_what_it_has_loaded(instance, stand):
    ask(load_row(instance))
    run = stand.until(RunState.SUCCEEDED)
    assert (run.says, run.row_count, run.byte_count, run.commits, run.problems, run.gaps, run.topic_id) == (
        "5 rows", 70 // 14, 70, 1, 2, ["a gap"], "abc",
    )  # fmt: skip
    assert list(stand.home.iterdir()) == []


def test_progress_is_shown_while_it_runs_and_it_is_stopped_when_somebody_asks(instance, stand):
    stand.does({"says": "commit 1 of 5: writing"}, hangs=True)
    ask(load_row(instance))
    stand.turn()
    pid = stand.saw()["pid"]
    wait_for(lambda: stand.turn() or last().says, 20, "progress")
    assert (last().says, last().state) == ("commit 1 of 5: writing", RunState.RUNNING)
    LoadRun.objects.unscoped("a test").update(stop_asked=True)
    assert stand.until(RunState.STOPPED).says == claiming.STOPPED
    assert not Path(f"/proc/{pid}").exists()


def test_why_it_failed_is_said_in_words_of_the_tenant(instance, stand):
    physical = f"{instance_key(instance.id)}.orders"
    stand.does({"status": 4, "says": f"{physical} at 10.0.0.1:9000: expired (--skip-expired goes on)"}, status=4)
    ask(load_row(instance))
    run = stand.until(RunState.FAILED)
    assert (run.says, run.exit_status) == ("orders at the brokers: expired (skip_expired goes on)", 4)


def test_the_server_s_path_of_the_table_is_not_shown(instance, stand):
    load = load_row(instance)
    stand.does({"status": 6, "says": f"another program changed {load.folder} while this load wrote to it"}, status=6)
    ask(load)
    assert stand.until(RunState.FAILED).says == "another program changed the table while this load wrote to it"


def test_names_that_java_gives_to_errors_are_not_shown(instance, stand):
    says = "Py4JJavaError: Caused by: software.amazon.awssdk.services.s3.model.NoSuchBucketException: The bucket is not there"
    stand.does({"status": 1, "says": says}, status=1)
    ask(load_row(instance))
    assert stand.until(RunState.FAILED).says == "The bucket is not there"


@pytest.mark.parametrize("says", ["a\x00b", "a\ud800b", "a\nb"])
def test_words_that_no_row_can_hold_end_the_run_and_not_the_runner(instance, stand, says):
    stand.does({"status": 1, "says": says}, status=1)
    ask(load_row(instance))
    assert stand.until(RunState.FAILED).says == "a b"


def test_whatever_is_the_matter_with_one_run_does_not_end_the_runner(instance, stand, monkeypatch):
    ask(load_row(instance), Asked(from_time_ms=2**62))
    assert stand.until(RunState.FAILED).says == "the program cannot be started"
    assert list(stand.home.iterdir()) == []


def test_what_is_said_of_names_with_hyphens_is_left_as_it_is(instance, stand):
    stand.does({"status": 1, "says": "events--eu needs --new-topic"}, status=1)
    ask(load_row(instance, topic="events--eu"))
    assert stand.until(RunState.FAILED).says == "events--eu needs new_topic"


def test_a_long_run_gives_way_at_a_commit_and_goes_on_later(instance, stand, monkeypatch, charlie):
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    others = Instance.objects.unscoped("a test").get(pk=instance.pk)
    others.pk, others.organisation, others.name = "ins-charlie0", charlie.organisation, "charlie's"
    others.save(force_insert=True)
    stand.does(hangs="until it is told")
    load = load_row(instance)
    ask(load)
    stand.turn()
    stand.saw()
    ask(load_row(others, "load-charlie0000"))
    wait_for(
        lambda: stand.turn() or LoadRun.objects.unscoped("a test").get(load="load-charlie0000").state == "running",
        20,
        "it",
    )
    waiting = LoadRun.objects.unscoped("a test").get(load=load)
    assert (waiting.state, waiting.row_count) == (RunState.WAITING, 1), "what it has loaded is not forgotten"


def test_a_range_again_does_not_give_way_since_it_would_begin_anew(instance, stand, monkeypatch):
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    stand.does(hangs=True)
    ask(load_row(instance), Asked(offsets={0: (0, 5)}))
    stand.turn()
    assert [process.has_had_its_turn for process in stand.runner._processes] == [False]


def test_a_report_that_is_good_of_a_program_that_was_killed_is_no_success(instance, stand):
    stand.does(DONE, status=9)
    ask(load_row(instance))
    assert stand.until(RunState.FAILED).says == "the program ended with status 9, and did not say why"


def test_the_folder_of_an_instance_that_is_gone_goes_with_all_its_tables(instance, stand, settings, tmp_path):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders=(tmp_path / "lake").as_uri())
    own = tmp_path / "lake" / instance.organisation.pk / instance.pk / "load-of-before"
    other = tmp_path / "lake" / instance.organisation.pk / "ins-other000" / "load-1"
    for folder in (own, other):
        folder.mkdir(parents=True)
    stand.turn()
    assert own.exists()
    Instance.objects.unscoped("a test").update(state=InstanceState.DELETED)
    stand.another().turn(stand.clock)
    assert (own.parent.exists(), other.exists()) == (False, True)


def test_a_program_that_dies_without_a_word_has_failed(instance, stand):
    stand.does({"says": "commit 1 of 5"}, status=9)
    ask(load_row(instance))
    assert stand.until(RunState.FAILED).says == "the program ended with status 9, and did not say why"


def test_one_that_takes_too_long_is_stopped_and_the_next_goes_on(instance, stand, monkeypatch):
    monkeypatch.setattr(running, "LONGEST_S", 0.0)
    stand.does(hangs=True)
    ask(load_row(instance))
    stand.turn()
    stand.saw()
    assert stand.until(RunState.STOPPED).says == "stopped after 0 hours; the next run goes on where the table is"


def test_a_place_that_operators_allow_no_more_is_not_written_to(bucket_load, stand, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_buckets="")
    ask(bucket_load)
    assert "allow no such place" in stand.until(RunState.FAILED).says


@pytest.mark.parametrize("state", [InstanceState.ISOLATED, InstanceState.DELETING])
def test_of_an_instance_that_does_not_run_nothing_is_loaded(instance, stand, state):
    ask(load_row(instance))
    Instance.objects.unscoped("a test").update(state=state)
    assert stand.until(RunState.FAILED).says == f"the instance is {state}, not running"


def test_brokers_that_are_away_fail_the_run_and_not_the_runner(instance, stand, monkeypatch):
    def away(_address):
        raise ClusterUnavailable("no broker is running")

    monkeypatch.setattr(running.brokers, "brokers", away)
    ask(load_row(instance))
    assert stand.until(RunState.FAILED).says == "no broker is running"
    assert list(stand.home.iterdir()) == []


# --- the runner ---------------------------------------------------------------------------------------------------------


def test_it_runs_no_more_at_once_than_it_may(instance, stand):
    stand.does(hangs=True)
    for number in range(3):
        ask(load_row(instance, f"load-{number:012}"))
    stand.turn()
    stand.turn()
    assert stand.runner.running == 1
    states = LoadRun.objects.unscoped("a test").order_by("pk").values_list("state", flat=True)
    assert list(states) == [RunState.RUNNING, RunState.WAITING, RunState.WAITING]


def test_told_to_stop_it_leaves_its_run_to_the_next_runner(instance, stand):
    stand.does(hangs=True)
    ask(load_row(instance))
    over = threading.Event()
    turns = []

    def waits(_s):
        turns.append(stand.saw()["pid"])
        over.set()

    work(stand.runner, over, waits=waits)
    assert (last().state, last().runner) == (RunState.WAITING, "")
    assert not Path(f"/proc/{turns[0]}").exists()
    stand.does(DONE)
    stand.runner = stand.another()
    assert stand.until(RunState.SUCCEEDED).row_count == 5


def test_files_that_a_killed_runner_has_left_are_removed_but_for_those_of_runs_that_go_on(instance, stand):
    ask(load_row(instance))
    run = claiming.claim("elsewhere", stand.clock.now())
    kept, left = running.folder_of(run, stand.home), stand.home / "999999-abc"
    left.mkdir()
    stand.turn()
    assert (kept.exists(), left.exists()) == (True, False)


def test_of_a_run_that_was_taken_for_dead_the_program_ends(instance, stand):
    stand.does(hangs=True)
    ask(load_row(instance))
    stand.turn()
    pid = stand.saw()["pid"]
    LoadRun.objects.unscoped("a test").update(state=RunState.FAILED, says=claiming.DIED)
    wait_for(lambda: stand.turn() or not stand.runner.running, 20, "the program to end")
    assert not Path(f"/proc/{pid}").exists()
    assert (last().state, last().says) == (RunState.FAILED, claiming.DIED)
