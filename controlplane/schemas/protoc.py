"""Protobuf's compiler, in a process of its own: it is C++, and what it is given is a tenant's.

    python -m controlplane.schemas.protoc DIRECTORY

compiles DIRECTORY/schema.proto to DIRECTORY/schema.bin, a FileDescriptorSet with all that it imports, which may be Google's
well-known types. It takes 5 s of a processor and 1 GiB at most.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from controlplane.schemas.values import SchemaError

NAME = "schema.proto"
_COMPILED = "schema.bin"
_PROCESSOR_S, _MEMORY_BYTES = 5, 2**30
_WAIT_S = 15
_MOST_LINES = 3


def compiled(definition: str) -> bytes:
    """The FileDescriptorSet. Blocks. Raises SchemaError with what the compiler says."""
    with TemporaryDirectory(prefix="schema-") as directory:
        Path(directory, NAME).write_text(definition, encoding="utf-8")
        command = [sys.executable, "-m", __name__, directory]
        root = str(Path(__file__).parents[2])
        try:
            ended = subprocess.run(command, cwd=root, capture_output=True, timeout=_WAIT_S, check=False)  # noqa: S603 - ours
        except subprocess.TimeoutExpired as error:
            raise SchemaError("takes too long to compile") from error
        if ended.returncode:
            raise SchemaError(_said(ended.stderr.decode(errors="replace"), directory))
        return Path(directory, _COMPILED).read_bytes()


def _said(output: str, directory: str) -> str:
    found = [line.replace(f"{directory}/", "") for line in output.splitlines()]
    lines = [line for line in found if line.startswith(NAME)]
    told = "; ".join(line[:300] for line in lines[:_MOST_LINES])
    return f"is no Protobuf schema: {told}" if told else "cannot be compiled"


def _main(directory: str) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import grpc_tools  # noqa: PLC0415 - only here, within the limits
    from grpc_tools import protoc  # noqa: PLC0415

    well_known = Path(grpc_tools.__file__).parent / "_proto"
    out = f"--descriptor_set_out={directory}/{_COMPILED}"
    arguments = ["protoc", f"-I{directory}", f"-I{well_known}", "--include_imports", out, f"{directory}/{NAME}"]
    return int(protoc.main(arguments))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
