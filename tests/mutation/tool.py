"""mutmut, as the folder of an area needs it. A program of its own: it must not have imported what it is about to change.

    python tool.py list              the names of all mutants, made where they are not there
    python tool.py run               tries those whose names come on standard input
    python tool.py differences       what is different in them: a JSON object

Runs in the area's folder (`work`). The names of mutmut's own that are used here are why its version is pinned.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mutmut import __main__ as mutmut
from mutmut.mutation.diff_apply import get_diff_for_mutant


def main() -> None:
    what = sys.argv[1]
    if what == "list":
        with redirect_stdout(sys.stderr):
            Path("mutants").mkdir(exist_ok=True)
            mutmut.copy_src_dir()
            mutmut.create_mutants(1)
            found = mutmut.collect_source_file_mutation_data(mutant_names=())[0]
        print(json.dumps([name for _, name, _ in found]))
    elif what == "run":
        mutmut._run(sys.stdin.read().split(), 1)
    else:
        names = sys.stdin.read().split()
        print(json.dumps({name: get_diff_for_mutant(name) for name in names}))


if __name__ == "__main__":
    main()
