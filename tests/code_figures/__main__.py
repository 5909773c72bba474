"""``python -m tests.code_figures [COMMIT...]``: prints the figures of this tree, and of each commit before it."""

from __future__ import annotations

import sys

from tests import code_figures

columns = {commit: code_figures.figures(code_figures.at(commit)) for commit in sys.argv[1:]}
columns["this tree"] = code_figures.figures(code_figures.here())
print(code_figures.text(columns))
