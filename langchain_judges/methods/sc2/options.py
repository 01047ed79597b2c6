"""The options of an SC² judge, and aspects that a caller gives: a list, or a file of them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from annotated_types import Ge
from pydantic import PlainValidator, model_validator
from typing_extensions import TypedDict

from langchain_judges import options, verdict
from langchain_judges.asking.models import ModelLike
from langchain_judges.errors import OptionError
from langchain_judges.methods import declaration, pairs, tasks
from langchain_judges.orders import OrderRule
from langchain_judges.rows.files import json_in

PROMPTS = "sc2/prompts.yaml"
# What the prompts are filled with.
WORDS = pairs.words_in(PROMPTS)
_ARTICLES = {"the", "a", "an"}

# How the best table is found; `create_sc2_judge` explains each.
Inference = Literal["tournament", "exact", "random"]


class AspectSet(TypedDict):
    """Aspects of one kind of texts, and what they were learned from.

    Attributes:
        task: What texts are compared by, as in `create_sc2_judge`.
        model: The identity of the model; never an address or a key.
        corpus: Hash of the texts, in their order.
    """

    aspects: list[str]
    task: str | Mapping[str, str]
    prompt_version: str
    model: dict[str, object]
    corpus: str
    texts: int
    failures: list[verdict.Failure]
    usage: verdict.Usage


# Aspects as callers give them: a list, what `learn_aspects` returned, or the file of it.
AspectsLike = Sequence[str] | AspectSet | str | os.PathLike[str]


def normal_form(phrase: str) -> str:
    """A phrase in lower case, without articles and punctuation, in the singular.

    >>> normal_form("The main Arguments.")
    'main argument'
    """
    text = unicodedata.normalize("NFC", phrase.casefold())
    # The number sign tells C# from C; letters of some scripts are joined by marks.
    parted = [
        " " if unicodedata.category(char)[0] == "P" and char != "#" else char for char in text
    ]
    words = "".join(parted).split()
    return " ".join(map(_singular, [word for word in words if word not in _ARTICLES] or words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def load_aspects(path: str | os.PathLike[str]) -> AspectSet:
    """Read the aspects that `learn_aspects` kept in a file.

    Raises:
        OptionError: There is no such file, or it holds something else.
    """
    try:
        data = json_in(Path(path))
    except (OSError, ValueError) as exc:
        raise OptionError(declaration.WORDS["no_aspects"].format(str(path), exc)) from exc
    if not isinstance(data, Mapping) or not _phrases(data.get("aspects")):
        raise OptionError(f"{path} holds no learned aspects: no list of texts under `aspects`")
    return cast("AspectSet", data)


def _phrases(value: object) -> list[str]:
    """A list of phrases as they are written, each meaning once; empty for anything else."""
    texts = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    usable = all(isinstance(each, str) and normal_form(each) for each in texts)
    first = {normal_form(each): " ".join(each.split()) for each in texts[::-1] if usable}
    return list(dict.fromkeys(first[normal_form(each)] for each in texts if usable))


def read_aspects(aspects: object) -> list[str] | None:
    """The aspects, each meaning once; None for none.

    Raises:
        OptionError: They are of another type or empty.
    """
    if aspects is not None and not _phrases(aspects):
        raise OptionError(declaration.WORDS["aspects"].format(aspects))
    return _phrases(aspects) or None


# What texts are compared in; a file of learned aspects is the owner's to set.
AspectsOption = Annotated[AspectsLike | None, PlainValidator(read_aspects), options.Owner(but=list)]


class SC2(tasks.FewShot, pairs.Worded):
    """Create a judge that compares by tables before it prefers (Yan et al. 2023, SC²).

    `aspects` names what to compare the texts by; `table` samples |C| tables of what
    they share and where they differ; `match` compares two tables at a time by consistency only,
    until one is left; `preference` is decided from the texts and that table. With given aspects
    and a tournament that is 2|C| calls: |C| tables, |C| - 1 comparisons in log2 |C| rounds, one
    preference.

    Without `aspects` they are found online for every pair, which costs `aspect_samples`
    calls more; the paper's best results use five aspects learned offline from a corpus
    (`learn_aspects`); the preset `paper` uses five of ours instead: 16 calls. One order is
    asked and A or B is forced, as in the paper: only two identical texts are a tie unless
    `orders` says otherwise. A pair's `reference` is shown where the preference is asked; tables
    and comparisons do not see it.

    Where the paper is silent or we differ: which table comes first in a comparison is random
    (seeded); a comparator that chooses neither is replaced by a coin and reported; tables
    without a usable row meet no other; if no table is usable the texts are compared
    directly, and `failures` say so; eight online samples at temperature 0.7.

    Attributes:
        comparison_model: Asked instead of `model` for all but the preference.
        aspects: Your own phrases, or what `learn_aspects` returned, or its file; default:
            found for each pair.
        n_aspects: Most aspects to keep.
        aspect_samples: Samples of aspects for each pair; those that most samples name are
            kept.
        samples: Number of tables.
        inference: `"tournament"` (a knockout), `"exact"` (all ordered pairs), or `"random"`
            (one table, no comparison).
        task: `"helpful"`, `"harmless"`, `"summary"`, `"document"`, `"dialogue"`, or
            `{"question", "quality"}` of your own; learned aspects bring theirs.
        orders: `"none"` (the paper); `"strict"`, `"lenient"` and `"score_mean"` ask in both
            orders (one more call).
        seed: Seed of tables, aspects, shuffles and coins.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "aspects", "proposals", "tables",
        "bracket", "table", "choices"}`. `verdict.score` is the probability of
        the label if log-probabilities came, else 1 or 0.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "sc2"
    # 1: cells of tables are cut.
    revision = 1
    summary = "SC²: tables of what is shared and what differs; the most consistent decides."
    few = {"aspects": ["Tone", "Depth"], "samples": 4}
    # |C| tables, |C| - 1 matches and a preference (SC², Table 4).
    result_tables = {
        "choices": "Preferences beside the table",
        "table": "The table that won",
        "bracket": "How the table was chosen",
    }
    templates = pairs.prompts_in(PROMPTS, "sc2")
    examples_in = ("preference",)
    describes = ("table", "match")
    results = ("aspects", "proposals", "tables", "bracket", "table", "choices")

    comparison_model: declaration.OtherModel = None
    aspects: AspectsOption = None
    n_aspects: Annotated[int, Ge(1)] = 5
    aspect_samples: Annotated[int, Ge(1)] = 8
    samples: Annotated[int, Ge(1)] = 8
    inference: Inference = "tournament"
    task: tasks.AboutTask = "helpful"
    orders: OrderRule = "none"
    seed: declaration.Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _as_learned(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take aspects that were learned with the task that they were learned for."""
        learned = values.get("aspects")
        if isinstance(learned, str | os.PathLike):
            learned = load_aspects(learned)
        if not isinstance(learned, Mapping):
            return values
        own = {"task": learned["task"]} if learned.get("task") else {}
        if own and (said := values.get("task", own["task"])) != own["task"]:
            raise OptionError(declaration.WORDS["learned_for"].format(own["task"], said))
        return {**own, **values, "aspects": learned.get("aspects", learned)}

    @property
    def models(self) -> Mapping[str, ModelLike | None]:
        """The steps that ask a model, each with its own or None."""
        return {**dict.fromkeys(super().models, self.comparison_model), "preference": None}

    @property
    def unasked(self) -> set[str]:
        """The steps with a prompt that nothing is asked by with these options."""
        return {*(["aspects"] if self.phrases else []), *(["match"] if self.samples == 1 else [])}

    @property
    def phrases(self) -> tuple[str, ...]:
        """The aspects, each meaning once; empty where they are found online."""
        return tuple(cast("list[str]", self.aspects or ()))

    @property
    def aim(self) -> tasks.Task:
        """The task of the preference."""
        name = self.task if isinstance(self.task, str) else "own"
        return tasks.worded(name, tasks.read_task(self.task), self.wording)

    @property
    def tables(self) -> int:
        """The number of tables; `random` needs only the one it draws."""
        return 1 if self.inference == "random" else self.samples

    @property
    def proposals(self) -> int:
        """The number of online samples that name aspects."""
        return 0 if self.aspects else self.aspect_samples

    @property
    def comparisons(self) -> int:
        """The most comparisons of the search (section 3.2, Table 2)."""
        exact = self.samples * (self.samples - 1)
        return {"random": 0, "tournament": self.samples - 1, "exact": exact}[self.inference]

    def calls(self) -> int:
        """The calls for one pair, excluding repairs.

        With m online samples, C tables and a tournament that is m + 2C: C tables, C - 1
        comparisons and a preference.
        """
        return self.proposals + self.tables + self.comparisons + len(self.order_list)

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return max(self.proposals, self.tables, self.comparisons, len(self.order_list))
