"""Rewrites whatever is made from the code: `python -m website.generated`, or `make generated`.

The drawings of graphs, the replayed verdicts, the list of ready rubrics, and what tests hold
frozen.
"""

from __future__ import annotations

import subprocess
import sys

from website import figures, rubrics, verdicts


def write() -> None:
    """Write every file that is stale, and record what tests hold frozen."""
    drawn = {figures.FOLDER / name: text for name, text in figures.figures().items()}
    for path, text in (drawn | verdicts.pages() | {rubrics.PAGE: rubrics.page()}).items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            sys.stdout.write(f"{path.relative_to(verdicts.ROOT)}\n")
    subprocess.run(
        [sys.executable, "-m", "tests.test_frozen", "--update"], check=True, cwd=verdicts.ROOT
    )


if __name__ == "__main__":
    write()
