"""The meter, and the runner of its daily jobs, as programs of the stack: commands, and the sentence where there are none.

They are what the stack can do without: no Java, no pyspark wheel for this platform or SLUICE_METERING=off,
and everything else runs without it. The sentence is printed at the start and handed to every process as
SLUICE_METERING_ABSENT, so that console and API say it too.

They start after everything else (Spark would take both cores of a small machine from the console's start), and nothing
waits for them: what brokers wrote in the meantime waits in `__usage`.
"""

import importlib.util
import os
import sys

from controlplane.java import JavaNotFoundError, find_java

RUNNER = (sys.executable, "-m", "controlplane.metering.pipeline.runner")
COMMAND = (sys.executable, "-m", "controlplane.metering.pipeline.jobs.usage")
STOP_PATIENCE_S = 20.0


def absence() -> str:
    """Why there is no metering; empty where there is."""
    if os.environ.get("SLUICE_METERING", "").lower() in ("off", "0", "no"):
        return "metering is switched off (SLUICE_METERING)"
    if importlib.util.find_spec("pyspark") is None:
        return "metering needs the pyspark wheel, which is not installed for this platform"
    try:
        find_java()
    except JavaNotFoundError as problem:
        return f"metering needs Java: {problem}"
    return ""


def never_waited_for() -> bool:
    """The stack is up without it."""
    return True
