"""Where a load may go, as a URI, and what Hadoop has to be told to get there. Pure.

A *folder* is one of the service's own: below the root that operators have set, by organisation, instance and load, so that
nobody can name somebody else's. A *bucket* is the tenant's, with an access key of theirs. Keys are always asked for, and no
other way of logging in is tried: a machine of the service may have a role of its own, and no tenant shall write with that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

BUCKET_NAME = re.compile(r"(?!xn--|sthree-)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", re.ASCII)
"""Without dots, which TLS to the bucket's own host name does not get along with."""
PATH = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*", re.ASCII)
REGION = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
KEY = re.compile(r"[\x21-\x7e]{1,200}")
LONGEST_PATH = 500
DEFAULT_REGION = "us-east-1"
AWS = "aws"
"""Instead of an endpoint: Amazon's own, of the bucket's region."""


class Kind(StrEnum):
    """Of a destination."""

    FOLDER = "folder"
    BUCKET = "bucket"


def folder_uri(root: str, organisation_id: str, instance_id: str, load_id: str) -> str:
    """Below the operators' root."""
    return "/".join((root.rstrip("/"), organisation_id, instance_id, load_id))


def bucket_uri(bucket: str, path: str) -> str:
    """As Hadoop writes it."""
    return f"s3a://{bucket}/{path}"


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


def hadoop_options(bucket: str, region: str, endpoint: str, access_key: str, secret_key: str) -> Mapping[str, str]:
    """For the file system of this bucket alone. `endpoint`: AWS, or where the operators' store is."""
    own = f"fs.s3a.bucket.{bucket}"
    chosen = {
        f"{own}.access.key": access_key,
        f"{own}.secret.key": secret_key,
        f"{own}.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        f"{own}.endpoint.region": region,
        # A wrong key, or a bucket that is not there, is said within seconds and not after minutes.
        f"{own}.attempts.maximum": "3",
        f"{own}.retry.limit": "3",
        f"{own}.connection.establish.timeout": "10s",
    }
    if endpoint != AWS:
        chosen |= {f"{own}.endpoint": endpoint, f"{own}.path.style.access": "true"}
        chosen |= {f"{own}.connection.ssl.enabled": str(endpoint.startswith("https:")).lower()}
    return chosen


def delta_rs_uri(uri: str) -> str | None:
    """As delta-rs writes it; None: of a store that only Hadoop has been told of."""
    if uri.startswith("s3a://"):
        return f"s3://{uri.removeprefix('s3a://')}"
    return f"file://{uri.removeprefix('file:').removeprefix('//')}" if uri.startswith("file:") else None


def delta_rs_options(region: str, endpoint: str, access_key: str, secret_key: str) -> Mapping[str, str]:
    """`hadoop_options` for the reader that is no Hadoop. A store that does not answer is given up within seconds."""
    chosen = {
        "AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key, "AWS_REGION": region,
        "connect_timeout": "2s", "timeout": "4s", "max_retries": "1", "retry_timeout": "4s",
    }  # fmt: skip
    if endpoint != AWS:
        chosen |= {"AWS_ENDPOINT_URL": endpoint, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}
        chosen |= {"AWS_ALLOW_HTTP": str(endpoint.startswith("http:")).lower()}
    return chosen


def options_text(options: Mapping[str, str]) -> str:
    """The file that the program reads."""
    return "".join(f"{name}={value}\n" for name, value in options.items())
