"""Guidelines drawn from audited mistakes: a few sentences in place of the examples.

They take a fraction of the examples' tokens, and the guard of the audit tries them on items
that the memory does not hold. Not in the paper; MLflow's MemAlign keeps such guidelines beside
remembered cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from langchain_core.runnables import RunnableConfig
from pydantic import Field
from typing_extensions import TypedDict

from langchain_judges.asking import adapter, models, own_prompts, reading
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import run
from langchain_judges.asking.question import Account, Question, Reply, run_of
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.example import Example
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.memory.recall import Recalled, read_recall
from langchain_judges.memory.shown import Recaller, block, cut_failures, has_labels
from langchain_judges.methods.allure import auditors, held_out, label_checks
from langchain_judges.methods.allure.judge import ALLURE, create_allure_judge
from langchain_judges.methods.allure.state import PROMPTS, WORDS, AuditItem, JudgeWorth
from langchain_judges.methods.items import item_of
from langchain_judges.verdict import Failure, Item, Label, LabelVerdict, Usage, add_usage

# Chance that labels changed at random pass as a rise, as in the first trial of an audit.
RISK = 0.25
_AT_ONCE = 8


# What is told where a model draws nothing.
_NONE_DRAWN = {"guidelines": "", "before": None, "after": None, "chance": None, "admitted": False}


class Guidelines(TypedDict):
    """Guidelines drawn from a memory, and their effect on held-out items.

    Attributes:
        guidelines: Pass them as `instructions`; empty where none could be drawn.
        before: The judge without them; None without guidelines.
        after: The judge with them; None without guidelines.
        chance: Probability of such a rise if labels changed at random, by a sign test.
        admitted: Whether neither accuracy nor balanced accuracy is lower, and the chance is
            small.
        failures: Of the drawing, and of what was not judged on dev.
    """

    guidelines: str
    before: JudgeWorth | None
    after: JudgeWorth | None
    chance: float | None
    admitted: bool
    failures: list[Failure]
    usage: Usage


def draw_guidelines(
    model: models.ModelLike,
    memory: FailureMemory,
    dev: Sequence[Mapping[str, Any]],
    *,
    most: int = 5,
    config: RunnableConfig | None = None,
    **options: Any,
) -> Guidelines:
    """Draw short guidelines from a memory's mistakes, and try them on held-out items.

    One call draws them, from the newest examples that a judge could be shown: on its scale,
    without media, within the memory's budget. The judge then labels `dev` without and with
    them, and they are admitted as the first trial of an audit admits examples: where `dev`
    rises by more than chance explains.

    Args:
        model: What `resolve_model` takes; it draws the guidelines and judges.
        memory: The audited mistakes, of which there must be one.
        dev: Items with their true `label`, of other tasks and groups than the mistakes.
        most: The most guidelines to draw.
        config: Bounds what is asked: `langchain_judges.runs.budget(max_calls=…)`.
        options: Of `create_allure_judge`; guidelines follow your own `instructions`.

    Raises:
        InputError: The memory holds no mistake that can be shown, or an item of dev has no
            label or belongs with a shown one.
        OptionError: An option is not allowed, or `most` is below one.
    """
    if most < 1:
        raise OptionError(f"`most` must be at least 1, got {most!r}")
    plain: Any = create_allure_judge(model, **options)
    labels, config = list(plain.options.labels), config or {}
    examples, cut = _shown(plain, memory, labels)
    items = _held_out(examples, dev, labels)
    reply = run(_asked(plain, examples, most, items[0], config))
    failures = [*cut, *reply.failures]
    if reply.data is None:  # nothing to try: dev is not paid for
        return cast("Guidelines", {**_NONE_DRAWN, "failures": failures, "usage": reply.usage})
    text = "\n".join(f"- {line.strip()}" for line in reply.data["guidelines"])
    instructions = "\n".join(filter(None, (options.get("instructions"), text)))
    told = create_allure_judge(model, **{**options, "instructions": instructions})
    before, earlier = _judged(plain, items, labels, config)
    after, later = _judged(told, items, labels, config)
    chance, verdicts = held_out.chance_of_rise(before, after), [*earlier, *later]
    return {
        "guidelines": text,
        "before": held_out.worth_of(before),
        "after": held_out.worth_of(after),
        "chance": chance,
        "admitted": not held_out.fell(before, after) and chance <= RISK,
        "failures": [*failures, *(f for each in verdicts for f in each["failures"])],
        "usage": add_usage([reply.usage, *(each["usage"] for each in verdicts)]),
    }


async def _asked(
    judge: Any, examples: Sequence[Example], most: int, item: AuditItem, config: RunnableConfig
) -> Reply:
    """The guidelines that a judge's model draws from examples; it is told how an item is judged."""
    options: ALLURE = judge.options
    prompts, version = own_prompts.prompt_set({"guidelines": PROMPTS["guidelines"]}, None)
    lines = Annotated[list[str], Field(min_length=1, max_length=most)]
    question = Question(
        method="allure",
        step="guidelines",
        adapter=adapter.ModelAdapter(judge.model, options.temperature),
        prompt=prompts["guidelines"],
        reply_schema=reading.shape_of("Guidelines", {"guidelines": lines}),
        version=version,
        repairs=options.repairs,
        cache=options.cache,
    )
    shown, standard = block(examples, head=WORDS["mistakes"]), auditors.standard_of(judge)(item)
    variables = {"examples": shown, "most": most, "standard": standard}
    return await ask(question, variables, Account(run=run_of(config)), unit="memory")


def _shown(
    judge: Any, memory: FailureMemory, labels: Sequence[Label]
) -> tuple[list[Example], list[Failure]]:
    """The newest examples that a judge could be shown too, oldest first, and a note on the rest."""
    known = Recalled(memory.examples())
    context = adapter.ModelAdapter(judge.model).context
    recaller = Recaller(memory, read_recall("near"), allow_leak=False, context=context)
    examples = recaller.fitting([each for each in known[::-1] if has_labels(each, labels)], {})
    return examples, cut_failures(recaller.report(known, examples))


def _held_out(
    examples: Sequence[Example], dev: Sequence[Mapping[str, Any]], labels: Sequence[Label]
) -> list[AuditItem]:
    """The items of dev, none of which belongs with a remembered mistake."""
    if all(each["wrong"] == each["corrected"] for each in examples):
        raise InputError(WORDS["no_mistake"].format(labels))
    items = held_out.identified(dev, "dev")
    label_checks.require_labels(items, labels, "dev")
    remembered: list[Any] = [
        {**item_of(each), "id": str(each["source"] or f"memory {n}"), "group": each["group"]}
        for n, each in enumerate(examples)
    ]
    both = held_out.grouped_by_task([*remembered, *items])
    held_out.check_apart({"the memory": both[: len(remembered)], "dev": both[len(remembered) :]})
    return items


def _judged(
    judge: Any, items: Sequence[AuditItem], labels: Sequence[Label], config: RunnableConfig
) -> tuple[list[held_out.Case], list[LabelVerdict]]:
    shown: list[Item] = [item_of(item) for item in items]
    results = judge.batch(shown, {"max_concurrency": _AT_ONCE, **config})
    verdicts: dict[str, LabelVerdict] = {
        str(item["id"]): result["verdict"] for item, result in zip(items, results, strict=True)
    }
    return held_out.labelled_cases(items, verdicts, labels), list(verdicts.values())
