"""Kafka's own Java tools, one command line each, in this order on one topic.

Their exit status proves little, so what they say is looked at.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.conformance.process import TIMED_OUT, run_lines
from tests.conformance.results import Result
from tests.support import apache_kafka

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 60
_TOPICS = "org.apache.kafka.tools.TopicCommand"
_TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_SERVER = ("--bootstrap-server", "{B}")


@dataclass(frozen=True)
class Tool:
    """One command line ({B}: the bootstrap addresses, {T}: the topic), and a pattern that its output must hold."""

    test: str
    main: str
    arguments: tuple[str, ...]
    says: str = ""
    stdin: str | None = None


TOOLS = (
    Tool(
        "topics_create",
        _TOPICS,
        (
            *_SERVER,
            "--create",
            "--topic",
            "{T}",
            "--partitions",
            "3",
            "--replication-factor",
            "3",
            "--config",
            "retention.ms=3600000",
        ),
        "Created topic",
    ),
    Tool(
        "topics_describe",
        _TOPICS,
        (*_SERVER, "--describe", "--topic", "{T}"),
        r"PartitionCount: 3.*retention.ms=3600000",
    ),
    Tool("topics_list", _TOPICS, (*_SERVER, "--list"), r"(?m)^{T}$"),
    Tool("topics_alter", _TOPICS, (*_SERVER, "--alter", "--topic", "{T}", "--partitions", "4")),
    Tool(
        "console_producer",
        "kafka.tools.ConsoleProducer",
        (
            *_SERVER,
            "--topic",
            "{T}",
            "--property",
            "parse.key=true",
            "--property",
            "key.separator=:",
            "--producer-property",
            "acks=all",
        ),
        stdin="".join(f"k{n}:v{n}\n" for n in range(1, 101)),
    ),
    Tool(
        "console_consumer",
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        (
            *_SERVER,
            *(
                "--topic",
                "{T}",
                "--from-beginning",
                "--max-messages",
                "100",
                "--timeout-ms",
                "10000",
                "--group",
                "{T}-jg",
            ),
            *("--property", "print.key=true", "--property", "print.partition=true", "--property", "print.offset=true"),
        ),
        "Processed a total of 100 messages",
    ),
    Tool(
        "verifiable_producer",
        "org.apache.kafka.tools.VerifiableProducer",
        (*_SERVER, "--topic", "{T}", "--max-messages", "1000", "--throughput", "-1", "--acks", "-1"),
        r'"tool_data".*"sent":1000,"acked":1000',
    ),
    Tool(
        "verifiable_consumer",
        "org.apache.kafka.tools.VerifiableConsumer",
        (*_SERVER, "--topic", "{T}", "--group-id", "{T}-vg", "--max-messages", "1000", "--reset-policy", "earliest"),
        r'(?s)"offsets_committed".*shutdown_complete',
    ),
    Tool(
        "producer_performance",
        "org.apache.kafka.tools.ProducerPerformance",
        (
            *("--topic", "{T}", "--num-records", "100000", "--record-size", "100", "--throughput", "-1"),
            *("--producer-props", "bootstrap.servers={B}", "acks=all", "linger.ms=5"),
        ),
        "100000 records sent",
    ),
    Tool(
        "consumer_performance",
        "org.apache.kafka.tools.ConsumerPerformance",
        (*_SERVER, "--topic", "{T}", "--messages", "100000", "--group", "{T}-pg", "--timeout", "10000"),
        r"(?m)^20\d\d-",
    ),
    Tool(
        "offsets_latest",
        "org.apache.kafka.tools.GetOffsetShell",
        (*_SERVER, "--topic", "{T}", "--time", "latest"),
        r"(?m)^{T}:0:[1-9]",
    ),
    Tool(
        "offsets_earliest",
        "org.apache.kafka.tools.GetOffsetShell",
        (*_SERVER, "--topic", "{T}", "--time", "earliest"),
        r"(?m)^{T}:0:0$",
    ),
    Tool(
        "offsets_max_timestamp",
        "org.apache.kafka.tools.GetOffsetShell",
        (*_SERVER, "--topic", "{T}", "--time", "max-timestamp"),
        r"(?m)^{T}:0:\d",
    ),
    Tool("groups_list", _GROUPS, (*_SERVER, "--list"), r"(?m)^{T}-jg$"),
    Tool("groups_describe", _GROUPS, (*_SERVER, "--describe", "--group", "{T}-jg"), r"{T}-jg +{T} +0 "),
    Tool("groups_describe_state", _GROUPS, (*_SERVER, "--describe", "--state", "--group", "{T}-jg"), "Empty"),
    Tool(
        "groups_reset_offsets",
        _GROUPS,
        (*_SERVER, "--group", "{T}-jg", "--topic", "{T}", "--reset-offsets", "--to-earliest", "--execute"),
        r"{T}-jg +{T} +0 +0",
    ),
    Tool("groups_delete", _GROUPS, (*_SERVER, "--delete", "--group", "{T}-jg"), "was successful"),
    Tool(
        "transactional_copier",
        "org.apache.kafka.tools.TransactionalMessageCopier",
        (
            *("--broker-list", "{B}", "--input-topic", "{T}", "--input-partition", "0", "--output-topic", "{T}-2"),
            *(
                "--max-messages",
                "100",
                "--consumer-group",
                "{T}-tg",
                "--transaction-size",
                "20",
                "--transactional-id",
                "{T}-tx",
            ),
        ),
        r'"remaining":0',
    ),
    Tool("transactions_list", _TRANSACTIONS, (*_SERVER, "list"), r"(?m)^{T}-tx\s+\d+\s+\d+\s+Complete"),
    Tool(
        "transactions_describe",
        _TRANSACTIONS,
        (*_SERVER, "describe", "--transactional-id", "{T}-tx"),
        r"(?m)^\d+\s+{T}-tx\s+\d+\s+\d+\s+Complete",
    ),
    Tool(
        "transactions_describe_producers",
        _TRANSACTIONS,
        (*_SERVER, "describe-producers", "--topic", "{T}-2", "--partition", "0"),
        r"(?m)^ProducerId.*LatestCoordinatorEpoch",
    ),
    Tool(
        "transactions_find_hanging",
        _TRANSACTIONS,
        (*_SERVER, "find-hanging", "--broker-id", "1"),  # of which it is a follower as well
        r"(?m)^Topic\s+Partition\s+ProducerId",
    ),
    Tool(
        "transactions_abort",  # of a producer that has nothing open there
        _TRANSACTIONS,
        (
            *(*_SERVER, "abort", "--topic", "{T}-2", "--partition", "0", "--producer-id", "1000000000"),
            *("--producer-epoch", "0", "--coordinator-epoch", "0"),
        ),
    ),
    Tool(
        "end_to_end_latency",
        "org.apache.kafka.tools.EndToEndLatency",
        ("{B}", "{T}-3", "200", "all", "100"),
        "Avg latency",
    ),
    Tool("api_versions", "kafka.admin.BrokerApiVersionsCommand", _SERVER, r"Produce\(0\)"),
    Tool(
        "configs_describe",
        "kafka.admin.ConfigCommand",
        (*_SERVER, "--describe", "--entity-type", "topics", "--entity-name", "{T}"),
        "retention.ms=3600000",
    ),
    Tool(
        "configs_alter",
        "kafka.admin.ConfigCommand",
        (
            *_SERVER,
            "--alter",
            "--entity-type",
            "topics",
            "--entity-name",
            "{T}",
            "--add-config",
            "retention.ms=7200000",
        ),
        "Completed updating",
    ),
    Tool("acls_list", "kafka.admin.AclCommand", (*_SERVER, "--list"), r"\A(?!.*(Error|Exception))"),
    Tool("topics_delete", _TOPICS, (*_SERVER, "--delete", "--topic", "{T}")),
)
_FAILED = re.compile(r"^Error|Exception in thread|^\S*Exception:", re.MULTILINE)


def run(bootstrap: str, scratch: Path, say: Callable[[str], None], only: str = "") -> list[Result]:
    """One after the other; with `only`, the first creates the topic all the same."""
    results = []
    for tool in TOOLS:
        if only in tool.test or tool is TOOLS[0]:
            result = _one(tool, bootstrap, scratch)
            say(f"{result.outcome:8} {result.test:30} {result.seconds:6.1f} s  {result.remark[:100]}")
            results.append(result)
    return results


def _one(tool: Tool, bootstrap: str, scratch: Path) -> Result:
    def filled(text: str) -> str:
        return text.replace("{B}", bootstrap).replace("{T}", "jt")

    began = time.monotonic()
    log = scratch / f"{tool.test}.log"
    status = run_lines(
        [*apache_kafka.tool(tool.main), *map(filled, tool.arguments)], limit_s=LIMIT_S, log=log, stdin=tool.stdin
    )
    seconds = time.monotonic() - began
    said = log.read_text()
    if status == TIMED_OUT:
        return Result(tool.test, "timeout", seconds, f"see {log.name}")
    problem = _FAILED.search(said)
    if status or problem or not re.search(filled(tool.says), said):
        text = said[problem.start() :].splitlines()[0] if problem else f"exit status {status}"
        return Result(tool.test, "fail", seconds, text)
    return Result(tool.test, "pass", seconds)
