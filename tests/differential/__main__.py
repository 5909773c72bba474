"""`make differential`: every scenario in every version that both brokers have.

    python -m tests.differential [--api NAME] [--show-all]

Apache Kafka 3.9.2 (its jars fetched by Maven once) and one of our brokers, both alone on loopback, ours on its internal
listener without authentication. Each difference is a field: fixed, or listed with its reason (`accepted`). Exit status 1 on a
difference that is not listed.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import ApiVersionsRequest, FindCoordinatorRequest
from dataplane.protocol.messages.produce import InitProducerIdRequest
from tests.conformance.target import OurCluster, Profile
from tests.differential import scenarios
from tests.differential.accepted import reason_for, unused
from tests.differential.answers import different
from tests.differential.asking import Asker, Step
from tests.differential.scenarios import SCENARIOS
from tests.support.apache_kafka import ApacheKafka
from tests.support.waiting import wait_for
from tests.support.wire import Wire

if TYPE_CHECKING:
    from tests.differential.scenarios import Scenario

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "var" / "reports" / "differential.json"
_PROFILE = Profile(
    (0,),
    {
        "num_partitions": 2,
        "default_replication_factor": 1,
        "offsets_topic_num_partitions": 4,
        "offsets_topic_replication_factor": 1,
        "transaction_state_log_replication_factor": 1,
        "group_min_session_timeout_ms": 1_000,
        "auto_create_topics_enable": False,
        "group_initial_rebalance_delay_ms": 0,
    },
)
SLOW_S = 1.0
Address = tuple[str, int]


@dataclass(frozen=True)
class Difference:
    """One field of one answer. `reason` is empty where nobody has accepted it."""

    api: str
    version: int
    scenario: str
    step: str
    path: str
    ours: str
    apache: str
    reason: str


def main() -> int:
    """The exit status."""
    arguments = _arguments()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    for module in iter_modules(scenarios.__path__):
        import_module(f"{scenarios.__name__}.{module.name}")
    began = time.monotonic()
    found: list[Difference] = []
    asked: Counter[str] = Counter()
    slow: dict[tuple[str, str, str], float] = {}
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sluice-differential-") as folder, ExitStack() as stack:
        apache = stack.enter_context(
            ApacheKafka(Path(folder) / "apache", settings=_PROFILE.apache_settings(), heap="512m")
        )
        ours = stack.enter_context(OurCluster(Path(folder) / "ours", _PROFILE, "internal"))
        addresses = (ours.addresses[0], ("127.0.0.1", apache.ports[0]))
        for address in addresses:
            wait_for(lambda: _has_coordinator(address), 30, "a coordinator")  # noqa: B023 - called at once
            wait_for(lambda: _has_producer_ids(address), 30, "producer ids")  # noqa: B023
        advertised = [_advertised(address) for address in addresses]
        for key, function in SCENARIOS:
            if arguments.api and key.name not in arguments.api.upper().split(","):
                continue
            for version in _common(key, *advertised):
                both = [_run(address, key, function, version) for address in addresses]
                asked[key.name] += len(both[1])
                for who, steps in zip(("ours", "apache"), both, strict=True):
                    slow.update({(key.name, step.label, who): step.took_s for step in steps if step.took_s > SLOW_S})
                found += _compared(key, version, function.__name__, *both)
            news = sum(d.api == key.name and d.scenario == function.__name__ and not d.reason for d in found)
            print(
                f"{time.monotonic() - began:6.1f} s  {key.name:28} {function.__name__:32} {news:4} unlisted", flush=True
            )
        problems += ours.crashed()
        if count := ours.complaints():
            ours.keep_logs(REPORT.parent)
            problems.append(f"{count} tracebacks in our broker's log, see {REPORT.parent.relative_to(ROOT)}")
    for (api, step, who), seconds in slow.items():
        print(f"slow: {api} / {step}: {who} {seconds:.1f} s")
    _say(found, asked, problems, show_all=arguments.show_all)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    document = {"asked": asked, "problems": problems, "differences": [asdict(d) for d in found]}
    REPORT.write_text(json.dumps(document, indent=1, default=str))
    return 1 if problems or any(not difference.reason for difference in found) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--api", default="", help="only these, as LIST_OFFSETS,FETCH")
    parser.add_argument("--show-all", action="store_true", help="accepted differences too")
    return parser.parse_args()


def _has_coordinator(address: Address) -> bool:
    with Wire(address) as wire:
        return bool(wire.call(FindCoordinatorRequest(key="first"), 3).error_code == 0)


def _has_producer_ids(address: Address) -> bool:
    with Wire(address) as wire:
        return bool(wire.call(InitProducerIdRequest(None, 60_000), 1).error_code == 0)


def _advertised(address: Address) -> dict[int, range]:
    with Wire(address) as wire:
        keys = wire.call(ApiVersionsRequest("differential", "1"), 3).api_keys
    return {key.api_key: range(key.min_version, key.max_version + 1) for key in keys}


def _common(key: ApiKey, ours: dict[int, range], theirs: dict[int, range]) -> range:
    mine, others = ours.get(key, range(0)), theirs.get(key, range(0))
    return range(max(mine.start, others.start), min(mine.stop, others.stop))


def _run(address: Address, key: ApiKey, function: Scenario, version: int) -> list[Step]:
    asker = Asker(address, version, f"{function.__name__}-{version}".replace("_", "-"))
    try:
        function(asker)
    except Exception as error:  # noqa: BLE001 - the other answers count nevertheless
        asker.steps.append(Step("the scenario's end", {"error": f"{type(error).__name__}: {error}"}))
    asker.close()
    return asker.steps


def _compared(key: ApiKey, version: int, name: str, ours: list[Step], theirs: list[Step]) -> list[Difference]:
    mine, others = ({step.label: step.fields for step in steps} for steps in (ours, theirs))
    found = []
    for label in dict.fromkeys((*others, *mine)):
        for path, our_value, their_value in different(
            mine.get(label, {"step": "absent"}), others.get(label, {"step": "absent"})
        ):
            said = name, label, path, str(our_value), str(their_value)
            found.append(Difference(key.name, version, *said, reason_for(key.name, version, *said)))
    return found


def _say(found: list[Difference], asked: Counter[str], problems: list[str], *, show_all: bool) -> None:
    groups: dict[tuple[str, ...], list[int]] = {}
    for d in found:
        if show_all or not d.reason:
            group = (d.api, d.scenario, d.step, d.path, d.ours[:60], d.apache[:60], d.reason)
            groups.setdefault(group, []).append(d.version)
    for (api, name, step, path, ours, apache, reason), versions in groups.items():
        mark = f"   ({reason})" if reason else ""
        print(f"{api} v{_ranges(versions)} {name} / {step}\n    {path}: ours {ours} | apache {apache}{mark}")
    print(f"\n{'api':30}{'asked':>7}{'accepted':>10}{'unlisted':>10}   (answers; fields)")
    for api, count in asked.items():
        listed = [bool(d.reason) for d in found if d.api == api]
        print(f"{api:30}{count:>7}{sum(listed):>10}{len(listed) - sum(listed):>10}")
    unlisted = sum(not d.reason for d in found)
    print(f"{sum(asked.values())} answers compared; {len(found) - unlisted} accepted differences, {unlisted} unlisted")
    for row in unused(asked):
        print(f"accepted, and not seen: {' | '.join(row[:-1])}")
    for problem in problems:
        print(problem)


def _ranges(versions: list[int]) -> str:
    low, high = min(versions), max(versions)
    return str(low) if low == high else f"{low}-{high}"


if __name__ == "__main__":
    sys.exit(main())
