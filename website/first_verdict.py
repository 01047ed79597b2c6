"""Print the README's first verdict: a large language model's recorded replies, judged again.

`python -m website.first_verdict` prints it; a test holds the README to it.
"""

from __future__ import annotations

from rich.console import Console

from cookbook.demo import RECORDED, rows_of
from langchain_judges import create_bsm_judge
from langchain_judges.report.terminal import verdict_panel
from langchain_judges.testing import ReplayChatModel


def first_verdict() -> str:
    """Return the verdict as the terminal shows it, 80 columns wide."""
    pair = rows_of("pairs")[0]
    result = create_bsm_judge(ReplayChatModel(path=RECORDED), max_criteria=3).invoke(pair)
    console = Console(width=80, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(verdict_panel({**pair, **result}))
    return capture.get()


if __name__ == "__main__":
    Console(highlight=False).print(first_verdict())
