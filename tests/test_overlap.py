"""Overlap with references: known values, and the figures of SummEval."""

import gzip
import json
from statistics import fmean

import numpy as np
import pytest

from langchain_judges.errors import OptionError
from langchain_judges.writing.overlap import OVERLAPS, overlap
from tests.conftest import DATA

SAME = "the cat sat on the mat"


@pytest.mark.parametrize("name", sorted(OVERLAPS))
def test_the_same_text_scores_highest_and_another_least(name):
    candidates = [SAME, "the cat is on a mat", "quarterly profits fell sharply"]
    same, near, far = overlap(name, candidates, [[SAME]] * 3)
    assert same == pytest.approx(1.0, abs=0.01)
    assert same > near > far >= 0


@pytest.mark.parametrize("name", sorted(OVERLAPS))
def test_of_several_references_the_most_alike_counts(name):
    far = "quarterly profits fell sharply"
    # BLEU counts the n-grams of all references together, which is as much here.
    alone = overlap(name, [SAME, "a dog"], [[SAME], ["a dog"]])
    assert overlap(name, [SAME, "a dog"], [[far, SAME], ["a dog"]]) == pytest.approx(alone)


def test_known_values():
    # 5 of 6 words each way; longest common subsequence of 5; 3 of 5 bigrams.
    pair = (["the cat sat on a mat"], [[SAME]])
    assert overlap("rouge1", *pair) == [pytest.approx(5 / 6)]
    assert overlap("rougeL", *pair) == [pytest.approx(5 / 6)]
    assert overlap("rouge2", *pair) == [pytest.approx(3 / 5)]


def test_wrong_use_is_said():
    with pytest.raises(OptionError, match="must be one of"):
        overlap("rouge9", ["a"], [["a"]])
    with pytest.raises(OptionError, match="at least one reference"):
        overlap("rouge1", ["a"], [[]])


def extremes():
    """Return SummEval's two best and two worst summaries of every article."""
    folder = DATA / "summeval16"
    if not folder.exists():
        pytest.skip("the SummEval data are not here")
    with gzip.open(folder / "articles.jsonl.gz", "rt") as file:
        articles = {row["id"]: row for row in map(json.loads, file)}
    rated = {}
    with gzip.open(folder / "summaries.jsonl.gz", "rt") as file:
        for row in map(json.loads, file):
            row["mean"] = round(fmean(row["expert_mean"].values()), 9)
            rated.setdefault(row["id"], []).append(row)
    chosen = []
    for rows in rated.values():
        chosen += sorted(rows, key=lambda r: (-r["mean"], r["model_id"]))[:2]
        chosen += sorted(rows, key=lambda r: (r["mean"], r["model_id"]))[:2]
    return articles, chosen


def test_rouge_on_summeval_correlates_as_it_was_measured_before():
    articles, chosen = extremes()
    means = [row["mean"] for row in chosen]
    texts = [row["summary"] for row in chosen]
    measured = {
        # One reference, then the nearest of eleven. How ties were broken there is not
        # known, and 32 of the 100 articles have one.
        "reference": {"rouge1": 0.327, "rouge2": 0.272, "rougeL": 0.317},
        "references": {"rouge1": 0.413, "rouge2": 0.326, "rougeL": 0.360},
    }
    for field, expected in measured.items():
        found = [articles[row["id"]][field] for row in chosen]
        references = [[each] if isinstance(each, str) else each for each in found]
        for name, value in expected.items():
            scores = overlap(name, texts, references)
            assert np.corrcoef(scores, means)[0, 1] == pytest.approx(value, abs=0.006)
