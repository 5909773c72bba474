"""The one door to S3. It only writes: objects, in parts where they are large, and nothing is listed or read.

The client is botocore, Amazon's own, released every few days, Apache-2.0. On top of what the service has already it brings one
small library; most of its 32 MB describe services that nobody uses here. obstore is typed and half as large, but adds what
the environment has, a session token for example, to the keys that it is given. minio has had no release for a year.

What botocore would find out by itself is switched off: keys, regions and files of the environment, proxies, redirects to
another region. A machine of the service may have a role of its own, and no tenant shall write with that.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from controlplane.lake.errors import LakeError, NoBucketError

PART_BYTES = 16 * 1024 * 1024
"""How much of a file is in memory at a time. S3 takes 10,000 parts, so a file may have 156 GiB."""
MOST_PARTS = 10_000
CONNECT_S = 10
READ_S = 60
ATTEMPTS = 4
"""Of each request, with 1, 2 and 4 seconds between them at most."""
WRITES = {"PUT", "POST", "DELETE"}
"""DELETE: of the parts of an upload that failed. No object is ever deleted."""

_CODE = re.compile(r"[A-Za-z0-9]{1,60}")
_ELSEWHERE = {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}
_ALONE = {"config_file": os.devnull, "credentials_file": os.devnull}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Of the bucket's owner. Never part of a text."""

    access_key: str
    secret_key: str

    def __repr__(self) -> str:
        return "Credentials(…)"


def aws_endpoint(region: str) -> str:
    """Amazon's own, of a region."""
    return f"https://s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


class Bucket:
    """Threads may share it. `endpoint`: of a store of one's own; None: Amazon's."""

    def __init__(
        self, name: str, region: str, credentials: Credentials, endpoint: str | None = None, attempts: int = ATTEMPTS
    ) -> None:
        self.name = name
        address = endpoint or aws_endpoint(region)
        self._client = _client(address, region, credentials, attempts, by_path=endpoint is not None)
        host = urlsplit(address).netloc
        self._client.meta.events.register("before-send.s3", _Guard({host, f"{name}.{host}"}))

    def put(self, key: str, content: BinaryIO) -> int:
        """Writes an object, whole or not at all, in place of one that is there. Bytes. Raises LakeError, OSError."""
        with self._refusals(key):
            first = content.read(PART_BYTES)
            if len(first) < PART_BYTES:
                self._client.put_object(Bucket=self.name, Key=key, Body=io.BytesIO(first))
                return len(first)
            return self._put_parts(key, chain([first], _parts(content)))

    def check(self, key: str) -> None:
        """Whether an object can be written there: one is begun in parts, and given up. Raises LakeError as `put` does.

        Nothing appears in the bucket, and no right is needed that a copy does not need anyway. An object that is written and
        deleted again would need `s3:DeleteObject`, with which a key that is lost could remove the table.
        """
        where = {"Bucket": self.name, "Key": key}
        with self._refusals(key):
            self._abandon({**where, "UploadId": self._client.create_multipart_upload(**where)["UploadId"]})

    @contextmanager
    def _refusals(self, key: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise refusal(error.response, self.name, key) from None
        except BotoCoreError as error:
            raise LakeError(f"the store of the bucket does not answer ({type(error).__name__})") from None

    def _put_parts(self, key: str, parts: Iterator[bytes]) -> int:
        """An object appears when its last part is there."""
        where = {"Bucket": self.name, "Key": key}
        where["UploadId"] = self._client.create_multipart_upload(**where)["UploadId"]
        done: list[dict[str, Any]] = []
        size = 0
        try:
            for number, part in enumerate(parts, start=1):
                if number > MOST_PARTS:
                    raise LakeError(f"{key} is larger than {MOST_PARTS * PART_BYTES} bytes")
                # As a stream: bytes would have to leave within one timeout as a whole, and not block by block.
                answer = self._client.upload_part(**where, PartNumber=number, Body=io.BytesIO(part))
                done.append({"PartNumber": number, "ETag": answer["ETag"]})
                size += len(part)
            self._client.complete_multipart_upload(**where, MultipartUpload={"Parts": done})
        except BaseException:
            self._abandon(where)
            raise
        return size

    def _abandon(self, where: dict[str, str]) -> None:
        """Parts cost money. What is left of them after a kill is for a rule of the bucket's owner."""
        try:
            self._client.abort_multipart_upload(**where)
        except (ClientError, BotoCoreError, LakeError):
            return


def refusal(answer: dict[str, Any], bucket: str, key: str) -> LakeError:
    """What S3 answered, in a sentence. Of the answer only its code is shown."""
    code = str(answer.get("Error", {}).get("Code", ""))
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    shown = code if _CODE.fullmatch(code) else str(status)
    if code == "NoSuchBucket":
        return NoBucketError(f"the bucket {bucket} does not exist")
    if code in _ELSEWHERE or 300 <= status < 400:
        return LakeError(f"the bucket is not in this region ({shown})")
    if status in {401, 403}:
        return LakeError(f"the bucket refuses the key ({shown})")
    if status >= 500:
        return LakeError(f"the store of the bucket fails ({shown})")
    return LakeError(f"the bucket refuses {key} ({shown})")


class _Guard:
    """Sees each request before it leaves."""

    def __init__(self, hosts: set[str]) -> None:
        self._hosts = hosts

    def __call__(self, request: Any, **_: object) -> None:
        if urlsplit(request.url).netloc not in self._hosts or request.method not in WRITES:
            # The client looks for the bucket elsewhere, or asks where it is.
            raise LakeError("the bucket is not in this region")


def _parts(content: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: content.read(PART_BYTES), b"")


def _client(address: str, region: str, credentials: Credentials, attempts: int, *, by_path: bool) -> Any:
    return _session().create_client(
        "s3",
        region_name=region,
        endpoint_url=address,
        aws_access_key_id=credentials.access_key,
        aws_secret_access_key=credentials.secret_key,
        verify=os.environ.get("SSL_CERT_FILE")
        or True,  # for a store whose certificate an authority of its own has signed
        config=Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"mode": "standard", "total_max_attempts": attempts},
            proxies={},
            ignore_configured_endpoint_urls=True,
            # What stores of other makers understand as well: no checksums at the end, but one of the body in the signature.
            request_checksum_calculation="when_required",
            s3={"addressing_style": "path" if by_path else "virtual", "payload_signing_enabled": True},
        ),
    )


def _session() -> Session:
    """One whose variables have their defaults, whatever the environment and files in the home folder say."""
    variables: dict[str, tuple[None, None, object, Callable[[object], object] | None]] = {
        name: (None, None, _ALONE.get(name, default), converter)
        for name, (_, _, default, converter) in Session.SESSION_VARIABLES.items()
    }
    return Session(session_vars=variables)
