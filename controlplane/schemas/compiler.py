"""What is known of a schema once it is read, found out in a process of its own, since what it is given is a tenant's.

    python -m controlplane.schemas.compiler avro|protobuf DIRECTORY

reads DIRECTORY/schema.proto. Of Avro it says whether it is a schema: the library's sentence about one that is none may be a
gigabyte. Of Protobuf it makes DIRECTORY/schema.bin, a FileDescriptorSet with all that is imported, which may be Google's
well-known types; that compiler is C++. It takes 5 s of a processor, 1 GiB, and files of 2 MiB at most.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore

from controlplane.schemas.values import SchemaError

NAME = "schema.proto"
_COMPILED, _SAID = "schema.bin", "said"
_PROCESSOR_S, _MEMORY_BYTES, _FILE_BYTES = 5, 2**30, 2**21
_WAIT_S = 15
_MOST_LINES, _LONGEST_LINE, _SAID_BYTES = 3, 300, 16 * 2**10
_AT_ONCE = BoundedSemaphore(2)


def compiled(kind: str, definition: str) -> bytes:
    """Of Protobuf the FileDescriptorSet, of Avro nothing. Blocks. Raises SchemaError, with what the compiler says."""
    if not _AT_ONCE.acquire(timeout=_WAIT_S):
        raise SchemaError("cannot be looked at now: too many others are")
    try:
        with TemporaryDirectory(prefix="schema-") as directory:
            return _compiled(kind, definition, Path(directory))
    finally:
        _AT_ONCE.release()


def _compiled(kind: str, definition: str, directory: Path) -> bytes:
    Path(directory, NAME).write_text(definition, encoding="utf-8", errors="backslashreplace")
    command = [sys.executable, "-m", __name__, kind, str(directory)]
    root = str(Path(__file__).parents[2])
    with Path(directory, _SAID).open("wb") as said:
        try:
            ended = subprocess.run(  # noqa: S603 - ours; without the secrets of this process
                command, cwd=root, env={}, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                timeout=_WAIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise SchemaError("takes too long to compile") from error
    if not ended.returncode:
        found = Path(directory, _COMPILED)
        return found.read_bytes() if found.exists() else b""
    with Path(directory, _SAID).open("rb") as said_file:
        lines = said_file.read(_SAID_BYTES).decode(errors="replace").splitlines()
    found_lines = [line.replace(f"{directory}/", "") for line in lines]
    told_lines = [line[:_LONGEST_LINE] for line in found_lines if line.startswith(NAME)]
    told = "; ".join(told_lines[:_MOST_LINES])
    if kind == "avro":
        if told:
            raise SchemaError(told.removeprefix(f"{NAME}: "))
        raise SchemaError("cannot be read as an Avro schema: it is too large or nested too deeply")
    if told:
        raise SchemaError(f"is no Protobuf schema: {told}")
    raise SchemaError("cannot be compiled: it is too large")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _protobuf(directory: str) -> int:
    import grpc_tools  # noqa: PLC0415 - only here, within the limits
    from grpc_tools import protoc  # noqa: PLC0415

    well_known = Path(grpc_tools.__file__).parent / "_proto"
    out = f"--descriptor_set_out={directory}/{_COMPILED}"
    arguments = ["protoc", f"-I{directory}", f"-I{well_known}", "--include_imports", out, f"{directory}/{NAME}"]
    return int(protoc.main(arguments))


def _avro(directory: str) -> int:
    from controlplane.schemas.avro_values import AvroDecoder  # noqa: PLC0415 - the same

    try:
        AvroDecoder(Path(directory, NAME).read_text(encoding="utf-8"))
    except SchemaError as error:
        sys.stdout.write(f"{NAME}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    _limit()
    sys.exit(_avro(sys.argv[2]) if sys.argv[1] == "avro" else _protobuf(sys.argv[2]))
