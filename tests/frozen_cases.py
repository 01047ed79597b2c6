"""What `test_frozen.py` runs: every method and preset, and options that reach other prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import SecretStr

from langchain_judges import FailureMemory
from langchain_judges.methods.registry import METHODS
from langchain_judges.methods.rubric.criteria import ready_rubric
from langchain_judges.writing.writers import WRITERS
from tests.fakes import turns
from tests.memories import Letters
from tests.schema_models import Recorder, SchemaModel, TextModel, ToolModel

PAIR = {
    "id": "p1",
    "input": "How do I keep basil alive on a windowsill through the winter?",
    "output_a": "Give it six hours of light, water when the soil is dry, pinch the tips.\n\n"
    "A lamp helps in December. Keep it away from cold glass.",
    "output_b": "Basil likes sun. Water it every day and hope for the best.",
}
ITEM = {
    "id": "i1",
    "input": "Which gate leads from the harbour to the tower?",
    "output": "Take the north gate, then the stairs. Answer: 2, 7, 9",
    "expected": "2, 9, 7",
    "family": "gates",
    "group": "tower",
}
SOURCE = {
    "input": "Sum up the notice.",
    "output": "The library closes at six from May on.",
    "source": "From May the library stays open until six, and it opens on Sundays.",
}
TASK = {
    "concepts": ["snow", "piano", "goat", "lantern", "bridge", "orange", "drum", "whistle"],
    "id": "w1",
}
REFERENCE = {"reference": "Light for six hours, dry soil between waterings, pinched tips."}
TURNS = {
    "input": [
        *turns("system", "Answer briefly."),
        *turns("user", "Is basil an annual?", "And how do I keep it through the winter?"),
    ],
    "output_a": turns("assistant", "Yes, it is.", "Indoors, near a lamp, with little water."),
    "output_b": turns("assistant", "It depends on the kind.", "Leave it outside under a cover."),
}
RUBRIC = "Prefer what a beginner can do at once. Write in plain English."
CRITERIA = [
    {"name": "Tone", "description": "Is the reply polite?", "weight": 3, "required": True},
    {"name": "Length", "scale": [1, 5], "anchors": {"1": "it rambles", "5": "it is brief"}},
    {"name": "Voice", "labels": ["stiff", "plain", "warm"]},
]
NO_CLUSTERS = {"dynamic": 2, "clustering": None}
FEW: dict[str, dict[str, Any]] = {
    "bsm": {"max_criteria": 2},
    "drpe": {"panel": NO_CLUSTERS},
    "sc2": {"aspects": ["Watering", "Light"], "samples": 2},
    "cot_sc": {"samples": 2},
    "relative_sc": {"samples": 2},
    "plan_solve": {"max_criteria": 2},
}
"""Options by method that keep the calls of a case few."""
EXTRA = {"rubric": {"source": "The north gate leads to the stairs: 2, 9, then 7."}}
"""Fields of a method's row beside those of `ITEM`: some ready rubrics need a source."""
WORK = [
    {"role": "user", "content": "Which gate?"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me look."},
            {"type": "image_url", "image_url": {"url": "https://example.org/gate.png"}},
            {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"},
        ],
        "tool_calls": [{"name": "look", "args": {"gate": 2}, "id": "1"}],
    },
    {"role": "tool", "content": "stairs", "tool_call_id": "1"},
    {"role": "assistant", "content": "The north gate."},
]
"""The output that some ready rubrics need."""


def row_of(method: str, preset: str | None) -> dict[str, Any]:
    """Fields of a preset's row beside those of `ITEM`."""
    rubric = ready_rubric(preset) if method == "rubric" and preset else None
    of_work = rubric and {*rubric.needs} - {"expected", "source"}
    return {**EXTRA.get(method, {}), **({"output": WORK} if of_work else {})}


OTHER = "other"
"""Stands for a second model, which shares the recorder."""


class Case(NamedTuple):
    """One judgment, or one text that is written."""

    method: str
    options: Mapping[str, Any] = {}
    row: Mapping[str, Any] = {}
    preset: str | None = None
    memory: bool = False
    model: Callable[[Recorder], Any] | None = None
    """The maker of the model, if it is another one."""


def pair_memory() -> FailureMemory:
    """A memory of three corrected judgments on pairs."""
    memory = FailureMemory(embeddings=Letters())
    questions = ("Why do leaves yellow?", "How deep do I plant tulips?", "When do figs ripen?")
    answers = ("Too much water.", "Three times their own height.", "In late summer, when soft.")
    memory.remember(
        {
            "input": question,
            "output": {"output_a": answer, "output_b": "Nobody knows."},
            "wrong": "B",
            "corrected": "A",
            "note": "It took modesty for care.",
        }
        for question, answer in zip(questions, answers, strict=True)
    )
    return memory


def item_memory() -> FailureMemory:
    """A memory of three corrected labels, of two failure modes."""
    memory = FailureMemory(embeddings=Letters())
    memory.remember(
        {
            "family": "gates",
            "input": f"Which gate leads to house {number}?",
            "output": f"Answer: {number}, 4",
            "expected": f"4, {number}",
            "wrong": 1,
            "corrected": 0,
            "mode": mode,
            "note": "The order is wrong.",
        }
        for number, mode in ((11, "order"), (12, "keywords"), (13, "order"))
    )
    return memory


def model_of(recorder: Recorder, **options: Any) -> SchemaModel:
    return SchemaModel(model="schema", api_key=SecretStr("none"), recorder=recorder, **options)


def _once(messages: list[Any]) -> str | None:
    return None if any(each.type == "ai" for each in messages) else "I cannot decide."


MODELS: dict[str, Callable[[Recorder], Any]] = {
    "asked in text": lambda recorder: TextModel(recorder=recorder),
    "asked by a tool": lambda recorder: ToolModel(recorder=recorder),
    "asked by structured output": lambda recorder: ToolModel(
        recorder=recorder, profile={"structured_output": True}
    ),
    "repaired": lambda recorder: model_of(recorder, spoil=_once),
    "unusable": lambda recorder: model_of(recorder, spoil=lambda messages: "I cannot decide."),
}


def short_of_context(recorder: Recorder) -> SchemaModel:
    """A model whose context takes neither a long article nor many examples."""
    return model_of(recorder, profile={"max_input_tokens": 1600})


def _presets() -> dict[str, Case]:
    tables: dict[str, Mapping[str, Any]] = {"": METHODS, "write ": WRITERS}
    return {
        f"{prefix}{method}" + (f"/{preset}" if preset else ""): Case(
            prefix + method, row=row_of(method, preset), preset=preset
        )
        for prefix, table in tables.items()
        for method, kind in table.items()
        for preset in (None, *kind.presets)
    }


def _of_every_method() -> dict[str, Case]:
    cases = {}
    for method, kind in METHODS.items():
        few = FEW.get(method, {})
        cases[f"{method} + instructions"] = Case(
            method, {**few, "instructions": RUBRIC, "temperature": 0.3}
        )
        cases[f"{method} + memory"] = Case(method, few, memory=True)
        if kind.takes == "pair":
            cases[f"{method} + reference"] = Case(method, few, REFERENCE)
            cases[f"{method} + turns"] = Case(method, few, TURNS)
    return cases


def _variations(method: str, **varied: Mapping[str, Any]) -> dict[str, Case]:
    few = FEW.get(method.removeprefix("write "), {}) if method in METHODS else {}
    return {
        f"{method} + {name.replace('_', ' ')}": Case(method, {**few, **options})
        for name, options in varied.items()
    }


def _with_models() -> dict[str, Case]:
    return {
        f"{method} {how}": Case(method, FEW.get(method, {}), model=make)
        for method in ("allure", "bsm")
        for how, make in MODELS.items()
    }


def _combined(method: str, options: Mapping[str, Any]) -> dict[str, Case]:
    """Cases of a judge that is made of two, of pairs and of single texts."""
    bsm = {"method": "bsm", "options": FEW["bsm"]}
    pairs: dict[str, Any] = {**options, "methods": ["relative", bsm]}
    items: dict[str, Any] = {**options, "methods": ["allure", "rubric"]}
    content = {"instructions": RUBRIC, "temperature": 0.3}
    return {
        method: Case(method, pairs),
        f"{method} + instructions": Case(method, {**pairs, **content}, REFERENCE),
        f"{method} + items": Case(method, {**items, **content}, memory=True),
        f"{method} unusable": Case(method, pairs, model=MODELS["unusable"]),
    }


CASES: dict[str, Case] = {
    **_presets(),
    **_of_every_method(),
    **_with_models(),
    "bsm repaired in text": Case(
        "bsm", FEW["bsm"], model=lambda recorder: TextModel(recorder=recorder, spoil=_once)
    ),
    "relative + memory cut": Case("relative", memory=True, model=short_of_context),
    "allure + memory cut": Case("allure", memory=True, model=short_of_context),
    "identical texts": Case("bsm", {}, {"output_b": PAIR["output_a"]}),
    "allure/e2": Case("allure", {}, {**SOURCE, "expected": None}, preset="e2"),
    "allure + source": Case("allure", {}, {**SOURCE, "expected": None}),
    "allure + several answers": Case("allure", {}, {"expected": ["2, 9, 7", "2, 9"]}),
    "allure + turns": Case("allure", {}, {"input": TURNS["input"], "output": TURNS["output_a"]}),
    "allure + nearest": Case("allure", {"recall": "near:3"}, memory=True),
    "allure + examples without reasons": Case("allure", {}, memory=True, preset="e1"),
    "bsm + turn 1 answers": Case("bsm", {**FEW["bsm"], "show_turn1_answers": True}, TURNS),
    "bsm + reference model": Case(
        "bsm", {**FEW["bsm"], "merge": "model", "reference_model": OTHER}, TURNS
    ),
    "write branch + instruction": Case(
        "write branch", {"instructions": RUBRIC, "strict": True}, {"instruction": "a short poem"}
    ),
    "write single_prompt + instruction": Case(
        "write single_prompt", {"plan": True, "samples": 2}, {"instruction": "a short poem"}
    ),
    **_variations(
        "allure",
        reason_first={"explain": "first"},
        grades={"labels": [1, 2, 3], "rubric": "How clear is it, from 1 to 3?"},
        names={"labels": ["poor", "fair", "good"], "steps": ["Read it.", "Grade it."]},
    ),
    **_variations(
        "rubric",
        several={"rubric": CRITERIA},
        each={"rubric": CRITERIA, "each": True},
        own={"rubric": "Is the reply rude?"},
    ),
    "rubric + abstain": Case("rubric", {"abstain": True}),
    "rubric + claims": Case("rubric", {"claims": True}),
    "rubric + claims, source": Case(
        "rubric", {"claims": True, "explain": "none"}, {**SOURCE, "expected": None}
    ),
    "rubric + each, memory": Case("rubric", {"rubric": CRITERIA, "each": True}, memory=True),
    "rubric + several, memory": Case("rubric", {"rubric": CRITERIA}, memory=True),
    **_variations(
        "bsm",
        criteria={"criteria": ["Depth: says why", "Tone"], "explain_first": True},
        means={"orders": "score_mean", "samples": 2},
        model_merge={"merge": "model", "reference_model": OTHER},
    ),
    **_variations(
        "drpe",
        candidate={"panel": {**NO_CLUSTERS, "context": "candidate"}, "role_model": OTHER},
        dialogue={"panel": {**NO_CLUSTERS, "static": "dialogue"}},
        merged={"panel": {**NO_CLUSTERS, "merged_prompt": True, "static": "question_answering"}},
        own_roles={
            "panel": {
                "static": ["Cook: wants leaves all winter", "Buyer: counts the cost"],
                "dynamic": 0,
            }
        },
        dense={"panel": {"dynamic": 3, "clustering": "dbscan"}},
        votes_sampled={"voting": {"confidence": "samples", "samples": 3}, "orders": "score_mean"},
        first_by_coin={"voting": {"first": "random"}},
    ),
    **_variations(
        "sc2",
        aspects_found={"aspects": None, "aspect_samples": 3, "n_aspects": 2},
        harmless={"task": "harmless"},
        summary={"task": "summary"},
        document={"task": "document", "orders": "lenient"},
        own_task={"task": {"question": "Which is kinder?", "quality": "Kind is brief."}},
        shots={"shots": 1, "orders": "strict"},
    ),
    **_variations("direct", aspects={"aspects": ["Light", "Water"], "orders": "score_mean"}),
    # No judge of the cascades decides before the last, so that all are asked.
    **_combined("cascade", {"thresholds": [1.0]}),
    **_combined("jury", {}),
    **_variations(
        "cot",
        summary_shot={"wording": "paper", "task": "summary", "shots": 1},
        document_shot={"wording": "paper", "task": "document", "shots": 1},
    ),
}
