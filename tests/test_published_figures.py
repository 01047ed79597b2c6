"""Figures over the real public sets, which stand beside the checkout at ../shared/data.

Every test here is marked `figures`, and skipped where those sets are not there. What the code
does with any rows is a matter of the other files, which need no data but their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cookbook import recorded_judges as judges
from langchain_judges import datasets as sets
from langchain_judges import metrics, report
from langchain_judges.report.joined_rows import judges_of
from tests.conftest import DATA
from tests.test_report_page import Page

pytestmark = [
    pytest.mark.figures,
    pytest.mark.skipif(
        not DATA.exists(), reason="figures over the public sets need them at ../shared/data"
    ),
]


# Accuracy of one order alone and agreement of the orders, from the source's own statistics; of
# PaLM2 without the 7 pairs that it counts as agreeing though neither reply can be read.
RECORDED = {
    "ChatGPT": (71.25, 57.5),
    "GPT-4": (81.0, 87.0),
    "LLaMA2": (72.0, 67.0),
    "PaLM2": (70.25, 70.0),
}


@pytest.fixture(scope="module")
def four():
    path = DATA / "mtbench_human200"
    data = sets.load("mtbench_human200", path)
    records = judges.recorded("mtbench_human200", path, setting="Vanilla_NoRules")
    runs = {
        name.partition(" · ")[0]: rows
        for name, rows in judges_of(judges.replay(records, data)).items()
    }
    return report.compare(runs, data, data_name="MT-Bench, 200 pairs")


def test_people_are_the_ceiling_where_several_voted():
    path = DATA / "pandalm"
    data = sets.load("pandalm", path)
    rows = list(judges.replay(judges.recorded("pandalm", path, judge="gpt-3.5-turbo"), data))
    trust_report = report.trust(rows, data)
    votes = [row["human_votes"] for row in data]
    groups = trust_report.sample.groups
    assert trust_report["agreement.people"] == metrics.people_agreement(votes, groups=groups)
    assert trust_report.uses["person"].word == "no"
    assert re.search("68.9\xa0%.* 92\xa0%", trust_report.sentence)
    assert "Not judged 2.5" in trust_report.sentence


@pytest.mark.parametrize("judge", sorted(RECORDED))
def test_recorded_judges_have_their_published_numbers(four, judge):
    accuracy, agreement = RECORDED[judge]
    result = four[judge]
    assert 100 * result["agreement.mean_of_orders.wrong"] == pytest.approx(accuracy)
    judged = result["bias.flips"].n
    same = (1 - result["bias.flips"]) * judged
    assert 100 * same / 200 == pytest.approx(agreement)
    page = Page(four.to_html())
    assert f"{accuracy / 100:.6f}" in page.values["agreement.mean_of_orders.wrong"]


@pytest.mark.system
def test_the_recorded_report_of_the_cookbook_is_this_one(four, tmp_path):
    path, out = DATA / "mtbench_human200", tmp_path / "four.html"
    script = Path(__file__).parents[1] / "cookbook" / "recorded_report.py"
    result = subprocess.run(
        [sys.executable, script, path, "-o", out], capture_output=True, text=True, check=True
    )
    assert f"GPT-4: {four['GPT-4'].sentence}" in result.stdout
    theirs, ours = (Page(html).values for html in (out.read_text(), four.to_html()))
    for key, values in ours.items():
        assert sorted(values) == sorted(theirs[key])
