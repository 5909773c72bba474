r"""The program: `python -m controlplane.lake.copy` copies a Delta table from a folder into a bucket (`copying`).

::

    python -m controlplane.lake.copy_table --from file:/lake/orders --bucket events --path lake/orders --region eu-central-1 \
        --credentials keys --report report.json

The keys are in the file that `--credentials` names, and nowhere else ::

    access_key=AKIA…
    secret_key=…

Progress goes to standard error and to the report. There `version` is the newest version that the bucket has; given back as
`--after`, the next run goes on behind it. With `--try` nothing is copied: it is only tried whether the bucket takes what a copy
would write, which needs no table yet. The exit status is 0, or that of the error (`errors`); 2 as well for words that
make no sense. Needs neither Spark nor a JVM.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from controlplane.lake.bucket import Bucket, Credentials
from controlplane.lake.commitlog import CommitLog
from controlplane.lake.copying import Copy
from controlplane.lake.errors import LakeError, RequestError
from controlplane.lake.report import Reporter

FAILED = 1
TRIAL = "_sluice_trial"
"""What is begun and given up in the table's folder. No reader of Delta looks at names with a low line."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_REGION = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """One run."""

    table: Path
    bucket: str
    path: str
    region: str
    endpoint: str | None
    credentials: Path
    report: Path | None
    after: int
    until: Path | None = None
    is_trial: bool = False
    is_plain: bool = False

    @classmethod
    def read(cls, words: Sequence[str]) -> Request:
        """Ends the program with status 2, and a sentence, where words make no sense."""
        read = _parser().parse_args(words)
        return cls(
            read.table,
            read.bucket,
            read.path,
            read.region,
            read.endpoint,
            read.credentials,
            read.report,
            read.after,
            read.until,
            read.is_trial,
            read.is_plain,
        )


def credentials_of(text: str) -> Credentials:
    """Raises RequestError, in which nothing of the text stands."""
    pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
    found = {name.strip(): value.strip() for name, _, value in pairs}
    if set(found) != {"access_key", "secret_key"} or not all(map(_KEY.fullmatch, found.values())):
        raise RequestError("the file of credentials must have two lines, access_key=… and secret_key=…")
    return Credentials(**found)


def run(request: Request, reporter: Reporter) -> int:
    """The exit status. How it went is said."""
    try:
        credentials = credentials_of(request.credentials.read_text())
        bucket = Bucket(request.bucket, request.region, credentials, request.endpoint)
        if request.is_trial:
            reporter.say("looking whether the bucket takes the table")
            bucket.check(f"{request.path}/{TRIAL}")
            return 0
        copy = Copy(CommitLog(request.table), bucket, request.path, reporter, request.until, request.is_plain)
        reporter.say(copy.run(request.after))
        return 0
    except LakeError as error:
        reporter.say(str(error))
        return error.exit_status
    except (OSError, ValueError) as error:
        reporter.say(f"{type(error).__name__}: {error}")
        return FAILED


def main(words: Sequence[str]) -> int:
    """The exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    for noisy in ("botocore", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    request = Request.read(words)
    reporter = Reporter(request.report, logging.getLogger("sluice.lake").info)
    status = run(request, reporter)
    reporter.end(status, None)
    return status


def _folder(text: str) -> Path:
    uri = urlsplit(text)
    if uri.scheme != "file" or uri.netloc or uri.query or uri.fragment or not uri.path.startswith("/"):
        raise argparse.ArgumentTypeError("must be a folder of this machine: file:/lake/orders")
    return Path(unquote(uri.path))


def _endpoint(text: str) -> str:
    uri = urlsplit(text)
    if uri.scheme not in {"http", "https"} or not _HOST.fullmatch(uri.netloc) or uri.path.strip("/") or uri.query:
        raise argparse.ArgumentTypeError("must be the address of a store: https://s3.example.com")
    return f"{uri.scheme}://{uri.netloc}"


def _path(text: str) -> str:
    path = text.strip("/")
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise argparse.ArgumentTypeError("must be a folder in the bucket: lake/orders")
    return path


def _bucket(text: str) -> str:
    if not _BUCKET.fullmatch(text):
        raise argparse.ArgumentTypeError("must be the name of a bucket")
    return text


def _region(text: str) -> str:
    if not _REGION.fullmatch(text):
        raise argparse.ArgumentTypeError("must be a region: eu-central-1")
    return text


def _version(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("must be a version of the table: 0, 1, …")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lake_copy",
        description="Copies a Delta table from a folder into a bucket, version by version. Run again, it writes the same.",
    )
    add = parser.add_argument
    add("--from", dest="table", required=True, type=_folder, metavar="URI", help="the table: file:/lake/orders")
    add("--bucket", required=True, type=_bucket, metavar="NAME")
    add("--path", required=True, type=_path, metavar="FOLDER", help="where in the bucket: lake/orders")
    add("--region", required=True, type=_region, help="of the bucket")
    add("--endpoint", type=_endpoint, metavar="URL", help="of a store that speaks S3 (default: Amazon's of the region)")
    add("--credentials", required=True, type=Path, metavar="FILE", help="two lines: access_key=…, secret_key=…")
    add("--report", type=Path, metavar="FILE", help="where to keep JSON with what is done, and in the end how it went")
    add(
        "--until", type=Path, metavar="FILE", help="end after a version, once this file is there: the next copy goes on"
    )
    add("--after", type=_version, default=-1, metavar="VERSION", help="the version that is copied already")
    add(
        "--try",
        dest="is_trial",
        action="store_true",
        help="copy nothing: only try whether the bucket can be written to",
    )
    add(
        "--plain",
        dest="is_plain",
        action="store_true",
        help="copy the data files alone, for readers of Parquet: of a table whose rows are never replaced",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
