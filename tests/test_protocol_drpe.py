"""The protocol scripts of the cookbook, on small data and a model over HTTP."""

import json
import math
import re
from typing import Any

import numpy as np
import protocol_drpe
import pytest
from drpe_tables import RIVAL, figures, print_main_table, spread
from rich.console import Console

from langchain_judges.testing import reply, with_logprobs
from tests.conftest import DATA
from tests.test_drpe import READERS, in_tokens, readers


def longer(call):
    """Vote for the longer text, the surer the longer it is."""
    prompt = call.prompt
    if call.shape == "_Summary":
        return reply(json.dumps({"summary": "Something happened to somebody. " * 4}))
    if call.shape == "Readers":
        half = READERS[:4] if "by occupation" in prompt else READERS[4:]
        return reply(json.dumps({"readers": readers(half)}))
    if call.shape == "BothReaders":
        return reply(
            json.dumps({"general": readers(READERS[:4]), "familiarity": readers(READERS[4:])})
        )
    first, second = re.findall(r"<(?:candidate|passage)-\d-\w+>\n(.*?)\n</", prompt, re.S)
    vote = "1" if len(first) > len(second) else "2"
    surety = -1 / (1 + abs(len(first) - len(second)) / 50)
    answer_fields: dict[str, Any]
    if call.shape == "ForcedChoice":
        answer_fields = {"explanation": "so", "preference": vote}
    elif call.shape == "RoleVote":
        answer_fields = {"reason": "so", "vote": vote}
    else:
        seats = re.findall(r"^(\d+)\. [^:\n]+: ", prompt.split("judges are:")[-1], re.M)
        answer_fields = {f"role_{n}": {"reason": "so", "vote": vote} for n in seats}
    text = json.dumps(answer_fields)
    if call.body.get("top_logprobs"):
        return reply(with_alternatives(text, math.exp(surety)))
    return in_tokens(text, surety) if call.body.get("logprobs") else reply(text)


def with_alternatives(text, share):
    """Answer with one token for each vote, which offers both labels."""
    pieces = re.split(r'(?<="vote": ")([12])', text)
    return with_logprobs(
        *((p, share, {p: share, "12"[p == "1"]: 1 - share}) if p in {"1", "2"} else (p, 1)
          for p in pieces)
    )  # fmt: skip


def study(server, data, out, **more):
    where = {"base_url": server.url, "data": data, "out": out}
    return protocol_drpe.main("fake", resamples=50, **where, **more)


@pytest.mark.figures
def test_the_drpe_study_counts_correlates_and_resumes(
    serve, small_sets, tmp_path, capsys, letter_encoder
):
    server = serve(longer)
    methods = "drpe, no_batch, drpe_v1, llm_score, rouge1"
    options = {"only": "cnn2022", "limit": 6, "methods": methods, "sweeps": False}
    study_result = study(server, small_sets, tmp_path, **options)
    cnn = study_result["studies"]["cnn2022"]
    assert (cnn["articles"], cnn["summaries"]) == (6, 12)
    # References are one call for each article; panels are drawn once for both summaries.
    calls = {name: row["calls"] for name, row in cnn["methods"].items()}
    assert calls == {
        **{"drpe": 24, "no_batch": 12 + 12 * 7},
        **{"llm_score": 12, "rouge1": 0},
    }
    # Best against worst: two calls for each of six pairs, one of the judge without roles.
    assert {n: row["calls"] for n, row in cnn["pairs"].items()} == {"drpe_v1": 12, RIVAL: 6}
    # Methods share what is the same: the 12 role calls of `drpe`.
    assert len(server.calls) == 6 + 24 + 12 + (96 - 12) + 12 + 12 + 6
    rows = [json.loads(x) for x in (tmp_path / "cnn2022/drpe.jsonl").read_text().splitlines()]
    scores = [row["score_norm"] for row in rows]
    expected = abs(np.corrcoef(scores, [row["label"] for row in rows])[0, 1])
    drpe = cnn["methods"]["drpe"]
    assert drpe["pearson"] == pytest.approx(expected)
    assert drpe["pearson_95"][0] <= drpe["pearson"] <= drpe["pearson_95"][1]
    assert drpe["n"] == 12
    assert "williams" not in cnn["methods"]["llm_score"]
    assert {"williams", "tau_test"} <= cnn["pairs"]["drpe_v1"].keys()
    assert cnn["methods"]["rouge1"]["pearson"] is not None
    printed = capsys.readouterr().out
    assert "rule 'unique' keeps 6 CNN and 6 BBC articles" in printed
    assert "rule 'any' keeps 7 CNN and 7 BBC articles" in printed
    assert "saved" in printed
    assert list(study_result["table"]) == [
        *("drpe", "no_batch", "llm_score", "rouge1"),
        *("drpe_v1, in pairs", "llm_score, in pairs"),
    ]
    assert study_result["table"]["drpe"]["AVG"] == study_result["table"]["drpe"]["cnn2022"]
    study(server, small_sets, tmp_path, **options)
    assert len(server.calls) == 156
    # A run that was killed in the middle of a line pays for that reference alone.
    references = tmp_path / "references-cnn2022.jsonl"
    whole = references.read_text()
    references.write_text(whole[:-20])
    study(server, small_sets, tmp_path, **options)
    assert len(server.calls) == 157
    assert references.read_text() == whole


@pytest.mark.figures
def test_the_drpe_study_varies_the_number_of_roles(serve, small_sets, tmp_path, letter_encoder):
    server = serve(longer)
    options = {"only": "summeval", "limit": 2, "methods": "drpe"}
    study_result = study(server, small_sets, tmp_path, **options)["studies"]["summeval"]
    assert study_result["summaries"] == 8
    assert {name: len(values) for name, values in study_result["sizes"].items()} == {
        "drpe": 4,
        "no_static": 4,
        "manual": 4,
    }
    assert study_result["sizes"]["no_static"][0] is None
    assert all(math.isfinite(v) for v in study_result["sizes"]["drpe"])
    # Of the manual panel no reader is generated: three static roles, and k with a view.
    rows = (tmp_path / "summeval" / "size-manual-2.jsonl").read_text().splitlines()
    types = [role["type"] for role in json.loads(rows[0])["roles"]]
    assert types == ["General Public", "Critic", "News Author", "Student", "Business Person"]
    assert (tmp_path / "summeval" / "sizes.png").stat().st_size > 5000


@pytest.mark.figures
def test_every_method_is_asked_in_every_wording(serve, small_sets, tmp_path, letter_encoder):
    server = serve(longer)
    options = {"only": "summeval", "limit": 1, "methods": "no_batch, llm_score, rouge1"}
    study_result = study(server, small_sets, tmp_path, wordings=5, sweeps=False, **options)
    rows = study_result["studies"]["summeval"]["methods"]
    assert len(rows["no_batch"]["wordings"]["values"]) == 5
    assert len(rows[RIVAL]["wordings"]["values"]) == 5
    assert "wordings" not in rows["rouge1"]
    # Panels are shared: two role calls. Then four texts in five wordings, by seven
    # roles or by none.
    assert len(server.calls) == 2 + 5 * 4 * 7 + 5 * 4
    assert len({call.prompt for call in server.calls}) == len(server.calls)


def test_references_are_as_long_as_the_summaries_of_their_set(serve, small_sets, tmp_path):
    server = serve(longer)
    options = {"limit": 1, "methods": "rouge1", "sweeps": False}
    study(server, small_sets, tmp_path, only="cnn2022,bbc2022", **options)
    prompts = [call.prompt for call in server.calls]
    assert ["three to four sentences" in prompt for prompt in prompts] == [True, False]
    assert not any("Summarize the article" in prompt for prompt in prompts)
    assert ["in one sentence." in prompt for prompt in prompts] == [False, True]


def test_a_mean_over_sets_needs_a_number_on_each(capsys):
    two: dict[str, Any] = {
        "cnn2022": {"methods": {"drpe": {"pearson": 0.5}, "bleu": {"pearson": 0.2}}}
    }
    two["bbc2022"] = {"methods": {"drpe": {"wordings": {"mean": 0.7, "sd": 0.1}}}}
    study_result = print_main_table(Console(width=100), two)
    assert study_result["drpe"] == {"cnn2022": 0.5, "bbc2022": 0.7, "AVG": pytest.approx(0.6)}
    assert study_result["bleu"]["AVG"] is None
    assert "0.700 ± 0.100" in capsys.readouterr().out


def test_tau_is_tested_on_the_same_resamples_and_what_was_not_judged_is_counted():
    human = {f"{n}": float(n % 2) for n in range(20)}
    groups = {name: f"g{int(name) // 2}" for name in human}
    good = {**human, "19": None}
    bad = {name: 1 - value for name, value in human.items()}
    result = figures(good, human, groups, bad, resamples=50, seed=0)
    assert (result["n"], result["not_judged"], result["pearson"]) == (19, 1, pytest.approx(1))
    # Scores equal to people's values have tau 1, their opposite -1.
    assert result["tau_test"]["difference"] == pytest.approx(2)
    assert spread([human, bad], human)["mean"] == pytest.approx(1)


def test_meteor_without_wordnet_says_so(monkeypatch, capsys):
    monkeypatch.setattr("drpe_tables.wordnet_found", lambda: False)
    study_result = print_main_table(
        Console(), {"cnn2022": {"methods": {"meteor": {"pearson": 0.5}}}}
    )
    assert list(study_result) == ["meteor (no WordNet)"]


def leading(call):
    """Vote for the longer text; write references of the article's first words."""
    if call.shape != "_Summary":
        return longer(call)
    words = call.prompt.split("\n\n", 1)[1].split()
    return reply(json.dumps({"summary": " ".join(words[: 20 + len(words) % 9])}))


@pytest.mark.figures
@pytest.mark.skipif(not DATA.exists(), reason="the public sets are not here")
def test_every_cell_of_the_table_is_filled_on_real_summaries(serve, tmp_path, letter_encoder):
    overlaps = "rouge1, rouge2, rougeL, bleu, meteor, "
    options = {"limit": 3, "methods": overlaps + ",".join(protocol_drpe.METHODS)}
    server = serve(leading)
    study_result = study(server, DATA, tmp_path, sweeps=False, **options)
    # All methods share one cache: nothing is sent twice.
    bodies = {json.dumps(call.body, sort_keys=True) for call in server.calls}
    assert len(bodies) == len(server.calls)
    # Five overlaps, eight judges against a reference, three in pairs; three sets and a mean.
    assert len(study_result["table"]) == 5 + 8 + 3
    assert {len(cells) for cells in study_result["table"].values()} == {4}
    assert all(
        value is not None for row in study_result["table"].values() for value in row.values()
    )
