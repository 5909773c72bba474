"""A program that runs until it is told to end, and that spark-submit has started: SIGTERM is its JVM's to hear.

::

    whoever operates it ── spark-submit, which has become the JVM ── our Python

What spark-submit starts is a JVM, and that starts Python. SIGTERM goes to the JVM, which stops Spark and ends, and says nothing
to its child. Told nothing, the program would see a Spark that has failed, write that down, and try to bring up another one for
ever.

So the JVM tells it, by a hook that runs when it is about to end, and waits a while until the program has written what it has to
write: where the JVM is a container's first process, all ends with it. A JVM that is killed tells nobody; then it `is_lost`, and
the program ends, too: who starts spark-submit again has new ones.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

from controlplane.spark.session import is_submitted

ENDS_WITHIN_S = 20.0
"""So long does the JVM wait."""
_GATEWAY = "PYSPARK_GATEWAY_PORT"
_ANSWERS_WITHIN_S = 5.0


@contextlib.contextmanager
def told_to_end() -> Iterator[None]:
    """Within it the program gets SIGTERM when its JVM does. Where spark-submit has not started it, it gets it anyhow."""
    if not is_submitted():
        yield
        return
    from pyspark import SparkContext  # noqa: PLC0415  # see `session.open_session`
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415

    SparkContext._ensure_initialized()  # noqa: SLF001  # PySpark has no public door to the JVM before there is a session
    gateway: Any = SparkContext._gateway  # noqa: SLF001
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # of PySpark
    ended = threading.Event()
    hook = gateway.jvm.java.lang.Thread(_Hook(ended))
    runtime = gateway.jvm.java.lang.Runtime.getRuntime()
    runtime.addShutdownHook(hook)
    try:
        yield
    finally:
        ended.set()
        with contextlib.suppress(Exception):  # the JVM is ending, or gone: then the hook has run, or never will
            runtime.removeShutdownHook(hook)


def is_lost() -> bool:
    """Whether the JVM is gone that spark-submit has given: no other is to be had."""
    if not is_submitted():
        return False
    try:
        socket.create_connection(("127.0.0.1", int(os.environ[_GATEWAY])), _ANSWERS_WITHIN_S).close()
    except OSError:
        return True
    return False


class _Hook:
    """A Runnable, which the JVM's last thread runs."""

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended

    def run(self) -> None:
        """To the main thread, which is in a call of the JVM's most of the time: a signal ends that."""
        os.kill(os.getpid(), signal.SIGTERM)
        self._ended.wait(ENDS_WITHIN_S)

    class Java:
        """As py4j wants it."""

        implements = ("java.lang.Runnable",)
