"""What a running stack says of itself: `stack.json` for programs, a page of text for people."""

import os
import shutil
from collections.abc import Mapping
from typing import Any

from controlplane.stack.config import Stores, read_json, write_private_json
from controlplane.stack.layout import CLUSTERS, HOST, PROJECT, Layout

DEMO_TOPIC = "hello"
ADMIN_EMAIL = "admin@sluice.invalid"


def stack_document(layout: Layout, stores: Stores, pids: Mapping[str, int]) -> dict[str, Any]:
    """The content of stack.json. Process ids are of now: `null` while a process is being started again."""
    return {
        "console": layout.url,
        "api": f"{layout.url}/api/v1",
        "zookeeper": stores.zookeeper + stores.chroot,
        "brokers": [
            {"id": n, "internal": f"{HOST}:{layout.broker_port(n)}", "pid": pids.get(f"broker-{n}")}
            for n in layout.brokers
        ],
        "masters": [
            {"url": f"https://{HOST}:{layout.master_http_port(n)}", "pid": pids.get(f"master-{n}")}
            for n in layout.masters
        ],
        "clusters": [
            {
                "name": CLUSTERS[number - 1],
                "zookeeper": "".join(stores.zookeeper_of(layout, number)),
                "brokers": list(layout.brokers_of(number)),
                "masters": list(layout.masters_of(number)),
            }
            for number in layout.numbers
        ],
        "processes": {"supervisor": os.getpid(), **pids},
        "tenants": tenants(layout),
    }


def write_stack_file(layout: Layout, stores: Stores, pids: Mapping[str, int]) -> None:
    """Write stack.json as a whole, mode 0600: it holds the demo tenants' API keys."""
    write_private_json(layout.stack_file, stack_document(layout, stores, pids))


def tenants(layout: Layout) -> list[dict[str, Any]]:
    """The demo tenants with their keys and instances."""
    keys = read_json(layout.secrets_file).get("api_keys", {})
    found = read_json(layout.demo_file).get("tenants", [])
    return [{"name": t["name"], "api_key": keys.get(t["name"]), "instances": t["instances"]} for t in found]


def welcome(layout: Layout, seconds: float) -> str:
    """What `make up` prints once everything answers."""
    rows = [("Console", layout.url), ("API", f"{layout.url}/api/v1"), ("Logs", f"{_short(layout)}/log/")]
    if not layout.welcomed_file.exists():
        password = read_json(layout.secrets_file)["admin_password"]
        rows.insert(1, ("Admin", f"{ADMIN_EMAIL} / {password}   (shown this once)"))
    found = tenants(layout)
    for tenant in found:
        rows.extend(
            (f"Tenant {tenant['name']}", f"{instance['id']}   bootstrap {instance['bootstrap']}")
            for instance in tenant["instances"]
        )
    if not os.environ.get("SLUICE_SMTP"):
        rows.append(("Mail", "off (SLUICE_SMTP): signing up says who has an account, so let no strangers reach this"))
    rows.append(("API keys", f"{_short(layout)}/secrets.json"))
    if found and found[0]["instances"]:
        bootstrap = found[0]["instances"][0]["bootstrap"]
        rows += [("Produce", produce_line(bootstrap)), ("Consume", consume_line(bootstrap))]
    width = max(len(name) for name, _ in rows)
    body = "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)
    return f"\nSluice is up ({seconds:.1f} s).\n\n{body}\n\nctrl-C stops it; the data stays in {_short(layout)}/.\n"


def produce_line(bootstrap: str) -> str:
    """One line for a shell that writes a message."""
    if shutil.which("kcat"):
        return f"date | kcat -P -b {bootstrap} -t {DEMO_TOPIC}"
    return (
        '.venv/bin/python -c "from confluent_kafka import Producer; '
        f"p = Producer({{'bootstrap.servers': '{bootstrap}'}}); p.produce('{DEMO_TOPIC}', 'hello'); "
        "print(p.flush(10), 'messages not delivered')\""
    )


def consume_line(bootstrap: str) -> str:
    """One line for a shell that reads what was written."""
    if shutil.which("kcat"):
        return f"kcat -C -b {bootstrap} -t {DEMO_TOPIC} -o beginning -e"
    return (
        '.venv/bin/python -c "from confluent_kafka import Consumer; '
        f"c = Consumer({{'bootstrap.servers': '{bootstrap}', 'group.id': 'a', 'auto.offset.reset': 'earliest'}}); "
        f"c.subscribe(['{DEMO_TOPIC}']); [print(m.value()) for m in c.consume(100, 8)]; c.close()\""
    )


def _short(layout: Layout) -> str:
    folder = layout.directory
    return str(folder.relative_to(PROJECT)) if folder.is_relative_to(PROJECT) else str(folder)
