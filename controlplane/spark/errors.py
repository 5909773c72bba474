"""Spark's errors in a line."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    """What went wrong, without the JVM's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by:", "org.apache.kafka"))]
    return (causes[-1:] or lines[:1] or [type(error).__name__])[0][:500]
