"""Run all parts of the demo against the running stack; a table at the end, figures in reports/demo.json.

make demo                      everything (about three minutes)
python -m tests.demo limit     one part: access, limit, delivery or bill
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.demo import access, bill, delivery, limit
from tests.demo.stack import DemoError, Stack, stack_file

PARTS: dict[str, Callable[[Stack, Callable[[str], None]], Any]] = {
    "access": access.run,
    "limit": limit.run,
    "delivery": delivery.run,
    "bill": bill.run,
}


def main(arguments: list[str]) -> int:
    """The exit status: 0 when every promise held."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    wanted = arguments or list(PARTS)
    if unknown := [name for name in wanted if name not in PARTS]:
        print(f"demo: no part is called {unknown[0]}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    report: dict[str, Any] = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    status = 0
    try:
        stack = Stack(stack_file())
        for name in wanted:
            say(f"--- {name}")
            report[name] = PARTS[name](stack, say)
    except DemoError as error:
        report["error"] = str(error)
        print(f"demo: {error}", file=sys.stderr)
        status = 1
    file = stack_file().parent / "reports" / "demo.json"
    if file.parent.parent.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(report, indent=1))
        print(_table(report))
        print(f"figures: {file}")
    return status


def _table(report: dict[str, Any]) -> str:
    rows: list[tuple[str, str]] = []
    if found := report.get("access"):
        rows.append(("outside the whitelist", f"{found['refused']} refused"))
        rows.append(
            ("whitelist change in force", f"{found['let_in_after_s']} s, {found['open_connection_closed_after_s']} s")
        )
    rows += [
        (f"5 MiB/s, {row['traffic']}", f"{row['measured_mib_per_s']} MiB/s ({row['deviation_percent']:+} %)")
        for row in report.get("limit", [])
    ]
    if found := report.get("delivery"):
        rows += [(f"killed broker {k['broker']}", f"in sync after {k['in_sync_after_s']} s") for k in found["kills"]]
        for row in found["tenants"]:
            rows.append(
                (row["tenant"], f"{row['acknowledged']:,} acknowledged, {row['read']:,} read, {row['lost']} lost")
            )
            rows.append(
                ("", f"sha256 {row['sha256'][:16]}…, longest gap {row['longest_gap_between_acknowledgements_s']} s")
            )
    rows += [
        (
            f"metered {row['case']}",
            f"{row['produced_difference']:+,} B produced, {row['consumed_difference']:+,} B consumed",
        )
        for row in report.get("bill", [])
    ]
    if error := report.get("error"):
        rows.append(("FAILED", error[:200]))
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
