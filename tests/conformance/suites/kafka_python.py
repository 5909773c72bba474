"""kafka-python's own integration tests, as its sdist has them.

`test_ssl_integration` is left out: its fixture starts a broker of its own from an Apache distribution.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tests.conformance import fixtures
from tests.conformance.process import TIMED_OUT, run_lines
from tests.conformance.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 900
_LINE = re.compile(r"test/integration/(\S+) (PASSED|FAILED|ERROR|SKIPPED)")


def run(bootstrap: str, scratch: Path, say: Callable[[str], None], only: str = "") -> list[Result]:
    """All tests in one process of pytest, each within a minute."""
    home = fixtures.kafka_python()
    junit = scratch / "junit.xml"
    settings = scratch / "pytest.ini"  # or pytest would take our own
    settings.write_text("[pytest]\n")
    number = 0

    def on_line(line: str) -> None:
        nonlocal number
        found = _LINE.match(line)
        if found is not None:
            number += 1
            say(f"{number:3} {found[2].lower():8} {found[1]}")

    status = run_lines(
        [
            str(home / "venv/bin/python"),
            *(
                "-m",
                "pytest",
                "-v",
                "--tb=short",
                "--timeout=60",
                "-c",
                str(settings),
                "-p",
                "no:cacheprovider",
                f"--junitxml={junit}",
            ),
            f"--rootdir={home}",
            "--ignore=test/integration/test_ssl_integration.py",
            *(["-k", only] if only else []),
            "test/integration",
        ],
        limit_s=LIMIT_S,
        log=scratch / "out.log",
        folder=home,
        environment={
            "KAFKA_VERSION": "3.9.0",
            "KAFKA_ROOT": str(home / "empty"),
            "KAFKA_URI": f"kafka://{bootstrap.split(',', maxsplit=1)[0]}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        on_line=on_line,
    )
    if status == TIMED_OUT or not junit.exists():
        say(f"pytest ended with {status}; see {scratch / 'out.log'}")
        return []
    return [_result(case) for case in ET.parse(junit).iter("testcase")]


def _result(case: ET.Element) -> Result:
    test = case.get("classname", "").removeprefix("test.integration.") + "::" + case.get("name", "")
    outcome, remark = "pass", ""
    for child in case:
        if child.tag in ("failure", "error"):
            outcome, remark = "fail", child.get("message", "")
        elif child.tag == "skipped":
            outcome, remark = "skip", child.get("message", "")
    return Result(test, outcome, float(case.get("time", "0")), remark)
