"""The wheel `sluice-clients`: the clients of the documents and the mirror, without the service. Standard library alone.

    python -m wheels.build [--into var/wheels]

**What is in it.** `dataplane.clients` but for its console, which is on another library; `dataplane.protocol` and
`dataplane.records` as they are, for they look up their own modules; and whatever of the project these import, found in the
source. What is imported of others has to be in `NEEDED`: who makes a client need Django learns of it here.

**The file** (PEP 427) is a zip of these modules and of a folder with three texts: METADATA (the README is its body), WHEEL,
and RECORD, which has the SHA-256 of every file. The same source makes the same bytes: sorted, with one date for all.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "sluice-clients"
NEEDED = ("cramjam", "crc32c", "kazoo")
"""Of others: codecs, checksums, ZooKeeper. At least in the version that the project has pinned."""
_OURS = ("dataplane", "quota")
_WHOLE = ("dataplane.clients", "dataplane.protocol", "dataplane.records")
_WITHOUT = ("dataplane.clients.console",)
_ASKED_FOR = ("quota.contracts.identity",)  # by which an operator of one of our clusters says who it is
_SUMMARY = "Kafka's clients as its first documents describe them, and a mirror of topics"
_SCRIPT = "sluice-mirror = dataplane.clients.mirror.__main__:run"
_DATE = (1980, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """The source cannot be made into the wheel; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, and print where it is."""
    parser = argparse.ArgumentParser(prog="make wheel ARGS=", description=f"Build the wheel {NAME}.")
    parser.add_argument("--into", type=Path, default=ROOT / "var" / "wheels", metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        print(build(options.into))  # noqa: T201 - where it is, is what it says
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def build(into: Path, root: Path = ROOT) -> Path:
    """The wheel's path. Raises BuildError."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    info = f"{NAME.replace('-', '_')}-{version}.dist-info"
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in modules(root).values()}
    files |= {
        "dataplane/py.typed": b"",
        f"{info}/licenses/LICENSE": (root / "LICENSE").read_bytes(),
        f"{info}/METADATA": metadata(root, version).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{_SCRIPT}\n".encode(),
    }
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD").encode()
    into.mkdir(parents=True, exist_ok=True)
    made = into / f"{NAME.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in sorted(files.items(), key=lambda one: (one[0].startswith(info), one[0])):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return made


# --- what is in it ----------------------------------------------------------------------------------------------------


def modules(root: Path = ROOT) -> dict[str, Path]:
    """By name, with the files of all packages above. Raises BuildError where one needs what the wheel does not."""
    found: dict[str, Path] = {}
    waiting = [name for package in _WHOLE for name in _inside(root, package)] + list(_ASKED_FOR)
    while waiting:
        name = waiting.pop()
        path = _file(root, name)
        if name in found or path is None:
            continue
        found[name] = path
        waiting += [name.rsplit(".", 1)[0]] if "." in name else []
        for wanted in _imported(path):
            top = wanted.partition(".")[0]
            if top in _OURS:
                waiting.append(wanted)
            elif top not in NEEDED and top not in sys.stdlib_module_names:
                raise BuildError(f"{path.relative_to(root)} imports {wanted}, which {NAME} does not need so far")
    return dict(sorted(found.items()))


def _inside(root: Path, package: str) -> Iterator[str]:
    folder = root / package.replace(".", "/")
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not any(name == one or name.startswith(f"{one}.") for one in _WITHOUT):
            yield name


def _file(root: Path, name: str) -> Path | None:
    """None where it is no module: what is imported from one may be a class."""
    path = root / name.replace(".", "/")
    return next((one for one in (path / "__init__.py", path.with_suffix(".py")) if one.is_file()), None)


def _imported(path: Path) -> Iterator[str]:
    """What may be a module among what a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


# --- what it says of itself -------------------------------------------------------------------------------------------


def metadata(root: Path, version: str) -> str:
    """The core metadata, with the README as their body. Raises BuildError where a requirement is not pinned."""
    project: Mapping[str, str] = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {NAME}",
        f"Version: {version}",
        f"Summary: {_SUMMARY}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {one}" for one in requirements((root / "requirements" / "product.txt").read_text())),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (root / "wheels" / "clients.md").read_text()


def requirements(pins: str) -> list[str]:
    """At least what is pinned. Raises BuildError."""
    found = dict(re.findall(r"^([\w.-]+)==([\w.]+)", pins, re.MULTILINE))
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise BuildError(f"{', '.join(missing)}: not pinned")
    return [f"{name}>={found[name]}" for name in NEEDED]


def _record(files: Mapping[str, bytes], own: str) -> str:
    rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in sorted(files.items())]
    return "\n".join([*rows, f"{own},,"]) + "\n"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    sys.exit(main())
