"""Four recorded judges on 200 MT-Bench pairs: may they be trusted?

    python cookbook/recorded_report.py PATH/TO/mtbench_human200 -o four_judges.html

The folder is that of `langchain_judges.datasets.load("mtbench_human200", …)`. Nothing is
asked: the verdicts of GPT-4, ChatGPT, LLaMA 2 and PaLM 2 in both orders were recorded by the
authors of LLMBar (Zeng et al. 2023, arXiv 2310.07641). `--picture` has a headless Chromium take
a picture of the top of the page.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from cookbook.recorded_judges import recorded, replay
from langchain_judges import datasets
from langchain_judges.report import ComparisonReport, compare

NAMES = {"GPT-4": "GPT-4", "ChatGPT": "ChatGPT", "LLaMA2": "LLaMA 2", "PaLM2": "PaLM 2"}
SETTING = "Vanilla_NoRules"


def four_judges(folder: Path) -> ComparisonReport:
    """The report on the four judges; a winner is one in both orders."""
    name = "mtbench_human200"
    pairs = datasets.load(name, folder)
    runs = {
        title: replay(recorded(name, folder, judge=judge, setting=SETTING), pairs)
        for judge, title in NAMES.items()
    }
    return compare(runs, pairs, data_name="200 MT-Bench pairs, majority labels, both orders")


def picture(page: Path, out: Path, width: int = 1400, height: int = 960) -> None:
    """Save the top of a page as it looks in a browser's window of that size."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        sys.exit(f"a picture needs one of {', '.join(names)}; none is installed")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = f"--window-size={width},{height}"
    shot = f"--screenshot={out.resolve()}"
    command = [program, *flags, size, shot, page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603 - ours


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder mtbench_human200")
    parser.add_argument("-o", "--out", type=Path, default=Path("four_judges.html"))
    parser.add_argument("--json", type=Path, help="write everything as JSON too")
    parser.add_argument("--picture", type=Path, help="save the page's top as a PNG too")
    options = parser.parse_args()
    report = four_judges(options.folder)
    for each in report.reports:
        print(f"{each.name}: {each.sentence}")
    report.to_html(options.out)
    if options.json:
        report.to_json(options.json)
    if options.picture:
        picture(options.out, options.picture)


if __name__ == "__main__":
    main()
