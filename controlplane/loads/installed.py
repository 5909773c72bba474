"""What operators have set for loads: where folders are, whether buckets may be used, how many loads run at once."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from controlplane.env import EnvironmentProblem
from controlplane.loads.destinations import AWS, Kind

_SCHEMES = ("file", "hdfs")


def folders() -> str:
    """The root of tenants' folders; empty: there are none."""
    root: str = settings.ENVIRONMENT.lake_folders
    return root


def buckets() -> str:
    """AWS, or the endpoint of the store in which buckets are; empty: none may be used."""
    endpoint: str = settings.ENVIRONMENT.lake_buckets
    return endpoint


def at_once() -> int:
    """How many loads one runner runs."""
    count: int = settings.ENVIRONMENT.lake_loads_at_once
    return count


def kinds() -> list[Kind]:
    """The destinations that can be chosen."""
    root = folders()
    if not root:
        return []
    # What is copied into a bucket is read as files of this machine.
    return [Kind.FOLDER, Kind.BUCKET] if buckets() and root.startswith("file:") else [Kind.FOLDER]


def absence() -> str:
    """Why nothing can be loaded; empty: it can."""
    if settings.ENVIRONMENT.metering_absent:
        return "this installation runs without Spark, which loads need"
    if not kinds():
        return "the operators of this service have set no place for loads (SLUICE_LAKE_FOLDERS)"
    return ""


def check(*, folders_follow: bool = False) -> None:
    """Raises EnvironmentProblem. `folders_follow`: who asks gives its processes folders, where none are set (`manage.py up`)."""
    root, endpoint = folders(), buckets()
    if root and urlsplit(root).scheme not in _SCHEMES:
        raise EnvironmentProblem(f"SLUICE_LAKE_FOLDERS must begin with one of {', '.join(_SCHEMES)}, not {root!r}")
    if endpoint and not root.startswith("file:") and (root or not folders_follow):
        raise EnvironmentProblem("SLUICE_LAKE_BUCKETS needs SLUICE_LAKE_FOLDERS to begin with file:")
    if endpoint and endpoint != AWS and urlsplit(endpoint).scheme not in ("http", "https"):
        raise EnvironmentProblem(f"SLUICE_LAKE_BUCKETS must be {AWS!r} or an endpoint such as https://s3.example.com")
