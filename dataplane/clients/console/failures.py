"""How the console fails: one sentence on the error stream, and an exit status a script can act on.

    0  done
    1  the cluster refused, or not everything could be done
    2  the command line is wrong
    3  the cluster cannot be reached, or did not answer in time
    130  interrupted

`Failure` is what commands raise; errors of the client library become one here.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130

_NO_ANSWER = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.REQUEST_TIMED_OUT,
)


class Failure(Exception):  # noqa: N818 - it is how a command ends, not a fault of the program
    """Ends the program with this sentence and status."""

    def __init__(self, sentence: str, status: int = REFUSED) -> None:
        super().__init__(sentence)
        self.status = status


def failure_of(error: KafkaException | KafkaError, doing: str) -> Failure:
    """What to tell of an error of the library while `doing` something."""
    cause: KafkaError = error.args[0] if isinstance(error, KafkaException) else error
    if cause.code() in _NO_ANSWER:
        return Failure(f"{doing}: the cluster cannot be reached, or does not answer ({cause.name()})", UNREACHABLE)
    return Failure(f"{doing}: {cause.str()} ({cause.name()})")
