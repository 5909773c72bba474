"""A real PostgreSQL for a test, where one is installed.

    with PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        url = server.database("usage")  # an empty database, made now

It refuses to run as root; where the tests do, it runs as `nobody`, on data in a folder of its own that vanishes at the end.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

from tests.support.store import HOST, StoreServer

USER = "sluice"


def _program(name: str) -> str | None:
    """Debian keeps the server's programs off the path."""
    places = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *places]))


def is_installed() -> bool:
    return bool(_program("initdb") and _program("postgres"))


class PostgreSQLServer(StoreServer):
    """One server on loopback, which trusts whoever comes."""

    def __init__(self, directory: Path, port: int) -> None:
        super().__init__(directory, port)
        self.user = "nobody" if os.geteuid() == 0 else None
        self._data = ""

    def prepare(self) -> list[str]:
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self._data:
            self._data = tempfile.mkdtemp(prefix="postgresql-")  # a test's own folder is closed to other users
            if self.user:
                shutil.chown(self._data, self.user)
            command = [_program("initdb"), "-D", self._data, "-U", USER, "--auth=trust", "--no-sync", "--encoding=UTF8"]
            subprocess.run(command, check=True, capture_output=True, user=self.user, cwd=self._data)
        options = {"listen_addresses": HOST, "unix_socket_directories": "", "fsync": "off", "shared_buffers": "16MB"}
        return [
            str(_program("postgres")), "-D", self._data, "-p", str(self.port),
            *(word for name, value in options.items() for word in ("-c", f"{name}={value}")),
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            self._do("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def database(self, name: str, *, like: str = "template1") -> str:
        """Make it, empty, or as another one is that nobody is connected to; its URL."""
        self._do(f'CREATE DATABASE "{name}" TEMPLATE "{like}"')
        return f"postgresql://{USER}@{HOST}:{self.port}/{name}"

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self._data, ignore_errors=True)
        self._data = ""

    def _do(self, statement: str) -> None:
        with psycopg.connect(host=HOST, port=self.port, user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)
