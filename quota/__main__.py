"""``python -m quota master.toml``: one master, wired together. Runs until SIGTERM or SIGINT, then exits 0.

Exit codes: 0 stopped as asked, 1 it cannot start (one sentence on stderr says why), 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from quota.contracts.elastic import ElasticUse
from quota.contracts.instance import address_text
from quota.contracts.mastership import Mastership
from quota.contracts.throttled import ThrottledInterval
from quota.master.config import Config, ConfigError, load
from quota.master.election import Election
from quota.master.journal import ELASTIC, KEPT_BILLED_S, Journal
from quota.master.reading import HttpServer
from quota.master.secured import Secured
from quota.master.server import ReportServer
from quota.master.service import Service
from quota.master.store import Store
from quota.master.zookeeper import ZooKeeper

Log = Callable[[str], None]
MOST_UNWRITTEN = 10_000


class Master:
    """The parts, and what connects them."""

    def __init__(self, config: Config, log: Log) -> None:
        self._config = config
        self._log = log
        now = asyncio.get_running_loop().time
        self._journal: Journal | None = None
        self._elastic: Journal | None = None
        if config.data_dir:
            self._journal = Journal(config.data_dir, clock=time.time)
            self._elastic = Journal(config.data_dir, clock=time.time, name=ELASTIC, kept_s=KEPT_BILLED_S)
        self._unwritten: dict[tuple[str, str, int, int], ElasticUse] = {}
        self.service = Service(
            period_ms=config.period_ms,
            lease_ms=config.lease_ms,
            now=now,
            wall_ms=lambda: int(time.time() * 1000),
            keep=self._keep,
            keep_elastic=self._keep_elastic if self._elastic else None,
        )
        self.zookeeper = ZooKeeper(
            config.zookeeper,
            chroot=config.chroot,
            session_timeout_ms=config.session_timeout_ms,
            access=config.zookeeper_access,
        )
        self._secured = secured = Secured(config.tls, log) if config.tls else None
        scheme = "https" if secured else "http"
        candidate = Mastership(config.id, address_text(config.report), f"{scheme}://{address_text(config.http)}", 0)
        timeout_s = config.session_timeout_ms / 1000
        self.election = Election(self.zookeeper, candidate, self, session_timeout_s=timeout_s, log=log)
        self.reports = ReportServer(
            self.service, lambda: self.election.role, keys=config.keys, log=log, secured=secured
        )
        self.store = Store(
            self.zookeeper, on_specs=self.service.set_specs, on_brokers=self.service.set_brokers, log=log
        )
        self.http = HttpServer(
            self.service,
            self.election,
            now=now,
            learn=self.store.learn,
            keys=config.keys,
            journal=self._journal,
            elastic=self._elastic,
            open_metrics=config.metrics == "open",
            secured=secured,
        )

    def won(self, epoch: int) -> None:
        """The election's outcome."""
        self.service.won(epoch)

    def lost(self) -> None:
        """The election's outcome: brokers are sent to the next master."""
        self.service.lost()
        self.reports.close_connections("")

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set. Raises OSError where an address cannot be listened on."""
        await self.reports.start(*self._config.report)
        await self.http.start(*self._config.http)
        self._log(f"reports on {address_text(self._config.report)}, HTTP on {address_text(self._config.http)}")
        self.zookeeper.start()
        works = [self.election.run(), self.store.run(), self._ticks()]
        if self._secured:
            works.append(self._secured.watch())
        tasks = [asyncio.create_task(work) for work in works]
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()  # a bug: let it be seen, and let the supervisor start us again
        finally:
            await self._close([stopping, *tasks])

    def _keep(self, intervals: Sequence[ThrottledInterval]) -> None:
        """History is worth less than shares: a disk that refuses is said, and nothing else stops."""
        try:
            if self._journal:
                self._journal.append(interval.to_json() for interval in intervals)
        except OSError as error:
            self._log(f"throttled intervals are not kept: {error.strerror or error}")

    def _keep_elastic(self, uses: Sequence[ElasticUse]) -> None:
        """What is billed is written when the disk takes it again; later lines of a minute say all that earlier ones said."""
        self._unwritten |= {(use.instance, use.direction, use.epoch, use.minute_ms): use for use in uses}
        if not self._unwritten or self._elastic is None:
            return
        try:
            self._elastic.append(use.to_json() for use in self._unwritten.values())
        except OSError as error:
            self._log(f"what is billed of elastic bandwidth waits for the disk: {error.strerror or error}")
        else:
            self._unwritten.clear()
        while len(self._unwritten) > MOST_UNWRITTEN:  # the oldest: nobody pays for what is not on record
            del self._unwritten[next(iter(self._unwritten))]

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(self._config.period_ms / 1000)
            self.service.tick()

    async def _close(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.reports.stop()
        self.http.stop()
        self.service.lost()
        for journal in (self._journal, self._elastic):
            if journal:
                journal.close()
        await self.zookeeper.stop()


async def serve(config: Config, log: Log) -> None:
    """A master until a signal."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Master(config, log).run(stop)
    log("stopped")


def main(arguments: list[str]) -> int:
    """Run one master until it is told to stop; gives the exit status."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m quota master.toml\n")
        return 2
    try:
        config = load(Path(arguments[0]))
    except ConfigError as error:
        sys.stderr.write(f"master: {error}\n")
        return 1

    def log(line: str) -> None:
        stamp = time.strftime("%H:%M:%S", time.gmtime())
        sys.stderr.write(f"{stamp} master {config.id}: {line}\n")
        sys.stderr.flush()

    # A busy master makes a million small values a second, none of them in a cycle: what looks for cycles would take
    # half its time.
    gc.freeze()
    gc.set_threshold(200_000, 50, 1_000)
    try:
        asyncio.run(serve(config, log))
    except OSError as error:
        log(f"cannot listen: {error.strerror or error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
