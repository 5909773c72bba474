"""Where a load may go. Pure.

Every table is in a *folder* of the service: below the root that operators have set, by organisation, instance and load, so that
nobody can name somebody else's, and nobody but the service writes there. A *bucket* of the tenant gets a copy of it, with an
access key of theirs. It is written and never read: what stands in somebody else's bucket is somebody else's text, and a table's
log has paths and expressions in it that Spark would follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

BUCKET_NAME = re.compile(r"(?!xn--|sthree-)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", re.ASCII)
"""Without dots, which TLS to the bucket's own host name does not get along with."""
PATH = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*", re.ASCII)
REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
KEY = re.compile(r"[A-Za-z0-9/+=_.~-]{1,200}", re.ASCII)
BUCKET_URI = re.compile(r"s3a?://([^/]+)/(.*?)/?", re.ASCII)
FOLDER_URI = "folder:"
LONGEST_PATH = 500
DEFAULT_REGION = "us-east-1"
AWS = "aws"
"""Instead of an endpoint: Amazon's own, of the bucket's region."""


class Kind(StrEnum):
    """Of a destination."""

    FOLDER = "folder"
    BUCKET = "bucket"


class Format(StrEnum):
    """In which readers find what was loaded."""

    DELTA = "delta"
    PARQUET = "parquet"  # files alone: nothing in them is ever replaced


@dataclass(frozen=True, slots=True)
class Place:
    """What a destination names."""

    kind: Kind
    bucket: str = ""
    path: str = ""


def place_of(destination: str, folders: str, organisation_id: str, instance_id: str) -> Place | None:
    """Where a URI leads: ``s3://bucket/path`` (or s3a) into a bucket, ``folder:`` into the folders of the service.

    `folders` is the root of these. A URI that names it, or the folder of the instance below it, means the same as ``folder:``:
    the load has a folder of its own there. None: it leads nowhere that a load may go, above all to no other folder of this
    machine.
    """
    root = folders.rstrip("/")
    own = (
        {FOLDER_URI, root, f"{root}/{organisation_id}", f"{root}/{organisation_id}/{instance_id}"}
        if root
        else {FOLDER_URI}
    )
    if destination.rstrip("/") in own:
        return Place(Kind.FOLDER)
    found = BUCKET_URI.fullmatch(destination)
    return None if found is None else Place(Kind.BUCKET, found[1], found[2])


def folder_uri(root: str, organisation_id: str, instance_id: str, load_id: str) -> str:
    """Below the operators' root."""
    return "/".join((root.rstrip("/"), organisation_id, instance_id, load_id))


def bucket_uri(bucket: str, path: str) -> str:
    """The copy."""
    return f"s3://{bucket}/{path}"


def shown(folder: str, root: str) -> str:
    """A folder's address as its tenant is shown it: below the root, which is a path of the service's machines.

    Of one that was made below another root the three names that `folder_uri` gives.
    """
    if root and folder.startswith(f"{root}/"):
        return folder.removeprefix(f"{root}/")
    return "/".join(folder.split("/")[-3:])


FOLDER_READING = (
    "Only the service can read this folder. Messages that have expired in the topic are shown from it on the page of its"
    " messages, and by REST; whoever wants to read the table with programs of their own loads into a bucket,"
    " if this service writes to buckets."
)
BUCKET_READING = (
    "Whoever has a key that may list and read the bucket reads the table with any reader of Delta Lake, for example:"
)

PARQUET_READING = (
    "Whoever has a key that may list and read the bucket reads the files with any reader of Parquet, for example:"
)


def table_of(folder: str) -> Path | None:
    """A table's folder on this machine; None: it is elsewhere."""
    split = urlsplit(folder)
    return Path(split.path) if split.scheme == "file" and not split.netloc else None


def problems(bucket: str, path: str, region: str, access_key: str, secret_key: str) -> dict[str, str]:
    """What is wrong with a bucket's members, by name."""
    checks = {
        "bucket": (BUCKET_NAME, bucket, "must be the name of a bucket: 3 to 63 of a-z, 0-9 and hyphens"),
        "path": (
            PATH,
            path,
            "must be a folder in the bucket, such as lake/orders: letters, digits, and . _ = - within",
        ),
        "region": (REGION, region, "must be a region, such as eu-central-1"),
        "access_key": (KEY, access_key, "must be an access key of the bucket, of at most 200 characters"),
        "secret_key": (KEY, secret_key, "must be the secret of the access key, of at most 200 characters"),
    }
    found = {name: sentence for name, (form, text, sentence) in checks.items() if not form.fullmatch(text)}
    if len(path) > LONGEST_PATH:
        found["path"] = f"{LONGEST_PATH} characters at most"
    return found


def credentials_text(access_key: str, secret_key: str) -> str:
    """The file that the program reads which copies."""
    return f"access_key={access_key}\nsecret_key={secret_key}\n"
