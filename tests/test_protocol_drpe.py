"""The protocol scripts of the cookbook, on small data and a model over HTTP."""

import json
import math
import re

import numpy as np
import protocol_drpe
import pytest

from langchain_judges.testing import reply
from tests.test_drpe import READERS, in_tokens, readers


def longer(call):
    """Vote for the longer text, the surer the longer it is."""
    prompt = call.prompt
    if call.shape == "_Summary":
        return reply(json.dumps({"summary": "Something happened to somebody. " * 4}))
    if call.shape == "Readers":
        half = READERS[:4] if "occupations" in prompt else READERS[4:]
        return reply(json.dumps({"readers": readers(half)}))
    if call.shape == "BothReaders":
        return reply(
            json.dumps({"general": readers(READERS[:4]), "familiarity": readers(READERS[4:])})
        )
    first, second = re.findall(r"<(?:candidate|passage)-\d-\w+>\n(.*?)\n</", prompt, re.S)
    vote = "1" if len(first) > len(second) else "2"
    surety = -1 / (1 + abs(len(first) - len(second)) / 50)
    if call.shape == "ForcedChoice":
        said = {"explanation": "so", "preference": vote}
    elif call.shape == "RoleVote":
        said = {"reason": "so", "vote": vote}
    else:
        seats = re.findall(r"^(\d+)\. [^:\n]+: ", prompt.split("judges are:")[-1], re.M)
        said = {f"role_{n}": {"reason": "so", "vote": vote} for n in seats}
    text = json.dumps(said)
    return in_tokens(text, surety) if call.body.get("logprobs") else reply(text)


def study(server, data, out, **more):
    where = {"base_url": server.url, "data": data, "out": out}
    return protocol_drpe.main("fake", resamples=50, **where, **more)


@pytest.mark.figures
def test_the_drpe_study_counts_correlates_and_resumes(serve, small_sets, tmp_path, capsys):
    server = serve(longer)
    methods = "drpe, no_batch, drpe_v1, llm_score, rouge1"
    chosen = {"only": "cnn2022", "limit": 6, "methods": methods, "sweeps": False}
    found = study(server, small_sets, tmp_path, **chosen)
    cnn = found["studies"]["cnn2022"]
    assert (cnn["articles"], cnn["summaries"]) == (6, 12)
    # References are one call for each article; panels are drawn once for both summaries.
    assert cnn["cost"]["drpe"]["calls"] == 6 * 2 + 12
    assert cnn["cost"]["no_batch"]["calls"] == 6 * 2 + 12 * 7
    assert cnn["cost"]["drpe_v1"]["calls"] == 6 * 2
    assert cnn["cost"]["llm_score"]["calls"] == 12
    # Methods share what is the same: `no_batch` judges by the 12 role calls of `drpe`.
    assert len(server.calls) == 6 + 24 + (96 - 12) + 12 + 12
    rows = [json.loads(x) for x in (tmp_path / "cnn2022/drpe.jsonl").read_text().splitlines()]
    scores = [row["score_norm"] for row in rows]
    expected = abs(np.corrcoef(scores, [row["label"] for row in rows])[0, 1])
    drpe = cnn["methods"]["drpe"]
    assert drpe["pearson"] == pytest.approx(expected)
    assert drpe["pearson_95"][0] <= drpe["pearson"] <= drpe["pearson_95"][1]
    assert drpe["n"] == 12
    assert "williams" not in cnn["methods"]["llm_score"]
    assert cnn["methods"]["rouge1"]["pearson"] is not None
    printed = capsys.readouterr().out
    assert "rule 'unique' keeps 6 CNN and 6 BBC articles" in printed
    assert "rule 'any' keeps 7 CNN and 7 BBC articles" in printed
    assert "saved" in printed
    study(server, small_sets, tmp_path, **chosen)
    assert len(server.calls) == 138
    # A run that was killed in the middle of a line pays for that reference alone.
    references = tmp_path / "references-cnn2022.jsonl"
    whole = references.read_text()
    references.write_text(whole[:-20])
    study(server, small_sets, tmp_path, **chosen)
    assert len(server.calls) == 139
    assert references.read_text() == whole


@pytest.mark.figures
def test_the_drpe_study_varies_sizes_and_wordings(serve, small_sets, tmp_path):
    server = serve(longer)
    chosen = {"only": "summeval", "limit": 2, "methods": "drpe"}
    found = study(server, small_sets, tmp_path, **chosen)["studies"]["summeval"]
    assert found["summaries"] == 8
    assert {name: len(values) for name, values in found["sizes"].items()} == {
        "drpe": 4,
        "no_static": 4,
        "manual": 4,
    }
    assert found["sizes"]["no_static"][0] is None
    assert all(math.isfinite(v) for v in found["sizes"]["drpe"])
    # Of the manual panel no reader is generated: three static roles, and k with a view.
    rows = (tmp_path / "summeval" / "size-manual-2.jsonl").read_text().splitlines()
    types = [role["type"] for role in json.loads(rows[0])["roles"]]
    assert types == ["General Public", "Critic", "News Author", "Student", "Business Person"]
    assert len(found["wordings"]["values"]) == 5
    assert (tmp_path / "summeval" / "sizes.png").stat().st_size > 5000
