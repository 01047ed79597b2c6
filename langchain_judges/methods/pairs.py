"""Shared parts of judges of pairs: state, beginning of a judgment, material of a prompt."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import fmean
from typing import Any, Literal, NamedTuple, NotRequired, cast

from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from langchain_judges import verdict as verdicts
from langchain_judges.asking import effects, question
from langchain_judges.lazy import packaged
from langchain_judges.memory.example import Example
from langchain_judges.memory.shown import RememberedPair, block, which_is_which
from langchain_judges.methods import context, declaration, tasks
from langchain_judges.methods.declaration import WORDS
from langchain_judges.methods.lookups import Lookup, findings
from langchain_judges.orders import ORDER_NAMES, Order, combine, disagree, prefer
from langchain_judges.rows import checks, texts
from langchain_judges.rows.fences import MATERIAL_RULE as MATERIAL_RULE
from langchain_judges.rows.fences import fence

# Request, reference and both texts, each in a fence of its own: prompts of other pairs and
# orders share what stands before the first text that differs.
MATERIAL_ALONE = WORDS["request"] + "{reference}" + WORDS["responses"]
# The same with which turn is judged and the caller's words, for steps that prefer.
MATERIAL = MATERIAL_ALONE + "{focus}{instructions}\n\n"
FAIR = "Neither position nor length counts by itself."
# The system message of every judge that compares two texts.
COMPARES = f"You compare two responses to the same request. {MATERIAL_RULE}"
# The system message of a step that is shown one of them.
ALONE = f"You judge a response to a request. {MATERIAL_RULE}"


def words_in(file: str) -> Mapping[str, Any]:
    """The words that fill the prompts of a YAML file.

    Args:
        file: Below the folder of this module.
    """
    words: Mapping[str, Any] = packaged(__package__, file)["words"]
    return words


@cache
def prompts_in(file: str, method: str) -> dict[str, ChatPromptTemplate]:
    """The prompts of a method in a YAML file by step: what each role says, in order.

    A name in brackets stands for one of the file's `words`, of `WORDS`, or of the texts of this
    module and of `tasks`;
    a role without a text stands for messages.

    Args:
        file: Below the folder of this module.
        method: Of which the file may have none.
    """
    written = packaged(__package__, file)
    words = {**WORDS, **written.get("words", {})}
    names = {**vars(tasks), **globals(), **{name.upper(): text for name, text in words.items()}}

    def whole(text: str) -> str:
        return re.sub(r"\[([A-Z_]+)\]", lambda name: whole(str(names[name[1]])), text)

    def message(role: str, text: str | None) -> Any:
        return (role, whole(text)) if text else MessagesPlaceholder(role)

    return {
        step: ChatPromptTemplate.from_messages([message(*each) for each in said.items()])
        for step, said in written.get(method, {}).items()
    }


class Worded(declaration.GraphOptions):
    """The option of a method whose paper asks differently from us.

    Attributes:
        wording: `"own"`, or `"paper"`: what the paper's prompts ask and nothing more, in our
            words.
    """

    wording: tasks.Wording = "own"

    @classmethod
    def texts(cls, wording: tasks.Wording) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step in a wording."""
        own = prompts_in("papers.yaml", cls.method) if wording == "paper" else {}
        return {**cls.templates, **own}

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        return self.texts(self.wording)


# The text of a pair that a prompt shows alone.
Alone = Literal["A", "B"]


def pair_prompt(asked: str, *, alone: bool = False) -> ChatPromptTemplate:
    """A prompt that shows a pair, or one of its texts, and asks something about it.

    Args:
        asked: The template of what is asked.
        alone: Whether one text is shown; see `PairSteps.prompt_variables`.

    Raises:
        OptionError: A brace stands alone, or around something that is not a name.
    """
    if not alone:
        return question.chat_prompt(COMPARES, MATERIAL, asked)
    material = re.sub("\n<response-2.*</response-2-{fence_2}>", "", MATERIAL, flags=re.DOTALL)
    return question.chat_prompt(ALONE, material.replace("response-1", "response"), asked)


class PairState(RememberedPair, context.StepState, total=False):
    """The state of every judge of pairs; every value is plain JSON."""

    verdict: verdicts.Verdict | None


class PairSteps(context.RowSteps[PairState]):
    """The steps of a judge of pairs; a method adds its own."""

    source = RememberedPair

    @property
    def noun(self) -> str:
        """The word of a prompt for a judged text."""
        return "response"

    def seen(self, pair: verdicts.Pair, side: str) -> object:
        """One side as a model sees it, to check whether both sides are identical."""
        return texts.compared(pair[side])  # type: ignore[literal-required]

    def text(self, pair: verdicts.Pair, side: str) -> str:
        """One side as a prompt shows it."""
        return texts.shown(pair[side])  # type: ignore[literal-required]

    def begin(self, state: PairState, account: question.Account) -> effects.Update:
        """Check the pair, and that its models take what it holds.

        Two identical texts are a tie, without a call.
        """
        checks.check_pair(state)
        pair = pair_of(state)
        same = self.seen(pair, "output_a") == self.seen(pair, "output_b")
        if failures := self.context.unsupported_media(pair):
            why = f"Not judged: {failures[0]['detail']}."
            return self.decided(verdicts.not_judged(failures, verdicts.no_usage(), why))
        return self.decided(verdicts.even_verdict()) if same else self.first_state(pair, account)

    def frame(
        self, pair: verdicts.Pair, examples: str = "", order: Order | None = None
    ) -> dict[str, str]:
        """The words around the material: focus, the caller's words, examples.

        Examples stand before the row, where other rows have the same; see `asking.ask`.
        """
        words = context.instructions_block(self.context.options.instructions)
        return {
            "focus": self.focus_on(pair),
            "instructions": words + which_is_which(words, order, self.noun),
            "shared": examples,
        }

    def focus_on(self, pair: verdicts.Pair) -> str:
        """Say which turn is judged, where the request has several."""
        return WORDS["focus"] if texts.user_turns(pair["input"]) > 1 else ""

    def request(
        self, pair: verdicts.Pair, examples: str = "", order: Order | None = None
    ) -> dict[str, object]:
        """The variables of a prompt that shows the request, and neither of the texts."""
        text = texts.shown_task(pair["input"])
        token, frame = fence(text), self.frame(pair, examples, order)
        return {"fence": token, "fence_request": token, "request": text, **frame}

    def lookup_variables(self, state: PairState) -> Mapping[str, object]:
        """The pair as a prompt that looks things up shows it."""
        variables = self.prompt_variables(pair_of(state), "AB")
        return {
            "material": MATERIAL_ALONE.format(**variables) + str(variables["focus"]),
            "judgment": f"which response is better.{variables['instructions']}",
        }

    def prompt_variables(self, pair: ShownPair, order: Order | Alone) -> dict[str, object]:
        """The variables of a prompt that shows request, reference and both texts, or one.

        Both texts are shown with what the memory recalled for the pair.

        Args:
            pair: The pair, or a state that holds it.
            order: Of both texts; or the one that is shown alone, in slot 1.
        """
        examples = pair.get("shown") or ()
        request, reference = texts.shown_task(pair["input"]), pair.get("reference") or ""
        first, *others = (self.text(pair, f"output_{side.lower()}") for side in order)
        second, held = (others[0], "both") if others else ("", "it")
        of_both = cast("Order", order) if others else None
        lessons = block(examples, order=of_both, noun=self.noun) if others else ""
        frame, found = self.frame(pair, lessons, of_both), pair.get("lookups")
        return {
            "fence_request": fence(request),
            "fence_1": fence(first),
            "fence_2": fence(second),
            "request": request,
            "reference": reference_block(reference, held),
            "response_1": first,
            "response_2": second,
            **frame,
            "instructions": (findings(found) if found else "") + frame["instructions"],
            "of_row": pair.get("variables") or {},
        }


@cache
def scale_words(scale: tuple[int, int]) -> dict[str, object]:
    """The words about a scale: its ends, what scores mean, what right and wrong ones are.

    >>> scale_words((0, 1))["anchors"]
    '0: it fails; 1: perfect.'
    """
    low, high = scale
    words = WORDS["five" if high - low == 4 else "ends"]
    quarter = (high - low) // 4
    marks = {"low": low, "low_1": low + 1, "middle": (low + high) // 2, "high_1": high - 1}
    return {
        "low": low,
        "high": high,
        "anchors": words.format(**marks, high=high),
        "right": WORDS["right_scores"].format(low=low, **_right_spans(low, high, quarter)),
    }


def _right_spans(low: int, high: int, quarter: int) -> dict[str, str]:
    """Scores for a wrong and a right answer: a quarter of the scale each."""
    if not quarter:
        return {"wrong": str(low), "right": str(high)}
    up, down = ("up to ", "down to ") if quarter > 1 else ("or ", "or ")
    return {
        "wrong": f"{low}, {up}{low + quarter} if one slip spoils it",
        "right": f"{high}, {down}{high - quarter} if its reasoning has faults",
    }


def how_many(max_criteria: int, wording: tasks.Wording = "own") -> str:
    """The number of criteria in the words that ask for a plan."""
    several = f"1 to {max_criteria} criteria, the fewest that suffice,"
    if wording == "paper":
        several = f"up to {max_criteria} criteria"
    return several if max_criteria > 1 else "1 criterion"


def reference_block(reference: str, held: str = "both") -> str:
    """A known good answer as a prompt shows it; nothing without one."""
    words = {"fence": fence(reference), "reference": reference, "held": held}
    return WORDS["reference"].format(**words) if reference else ""


class ShownPair(verdicts.Pair):
    """A pair, and what a prompt shows beside it.

    Attributes:
        shown: What the memory recalled for it.
        task_kind: What its texts are, where the row says so.
        lookups: What was looked up for it.
    """

    shown: NotRequired[list[Example]]
    task_kind: NotRequired[str]
    lookups: NotRequired[list[Lookup]]


def pair_of(state: Mapping[str, Any]) -> ShownPair:
    """The pair that a state holds, with what was recalled for it."""
    beside = ("variables", "shown", "task_kind", "lookups")
    pair = {name: state.get(name) for name in ("input", "output_a", "output_b", "reference")}
    pair |= {name: state[name] for name in beside if state.get(name)}
    return cast("ShownPair", pair)


def coin_of(pair: verdicts.Pair, seed: int, *more: object) -> random.Random:
    """A coin of a judge's seed and a pair, whichever text is A."""
    sides = sorted(texts.readable(pair[side]) for side in ("output_a", "output_b"))
    return seeded(seed, sides, texts.transcript(pair["input"]), *more)


def seeded(*parts: object) -> random.Random:
    """A source of coins that depends on `parts` alone."""
    return random.Random(":".join(map(str, parts)))  # noqa: S311 - no secret


def coin_side(pair: verdicts.Pair, seed: int) -> Literal["A", "B"]:
    """A side by a coin that follows the texts: swapped texts give the same text."""
    a, b = texts.readable(pair["output_a"]), texts.readable(pair["output_b"])
    return "A" if coin_of(pair, seed).choice(sorted([a, b])) == a else "B"


def examples_in(state: Mapping[str, Any]) -> list[Example]:
    """The remembered examples that a state holds."""
    return state.get("shown") or []


class OrderAnswer(NamedTuple):
    """Answer of one order, by identity of the texts.

    Attributes:
        score: How far A is preferred; None: as far as the label says.
        scores: Of both texts, where there are some.
        probability: Of the label's tokens, where it is known.
    """

    preference: verdicts.Preference
    score: float | None = None
    scores: Mapping[str, float] | None = None
    probability: float | None = None


def order_verdict(
    options: declaration.JudgeOptions,
    answers: Mapping[Order, verdicts.Preference | Mapping[str, float] | OrderAnswer],
    account: question.Account,
    reason: str | Mapping[str, str] = "",
    lack: str = "no label",
) -> verdicts.Verdict:
    """The verdict of a judge that takes a label, or a score of each text, by order.

    The score is the mean over the orders of a label's probability, or of 1 (A), 0.5 (a tie)
    and 0 (B) where one is unknown: on the side of the preference, and 0.5 for a tie. An order
    without an answer leaves the pair unjudged.

    Args:
        options: Say which orders were asked, and how they are combined.
        answers: What each order said, by identity: a label, `{"A": 4, "B": 2}`, or an
            `OrderAnswer`.
        account: Of the row: its failures and cost.
        reason: What decided, for people; or by the text that is preferred, `{"A": …, "B": …}`,
            so that a tie has the reason of neither.
        lack: Why an order has no answer, for people.
    """
    if len(answers) < len(options.order_list):
        absent = [ORDER_NAMES[order] for order in options.order_list if order not in answers]
        why = verdicts.why_not(account.failures, f"{lack} ({', '.join(absent)})")
        return verdicts.not_judged(**account.booked, rationale=why)
    said = {order: _as_answer(answers[order]) for order in sorted(answers)}
    scores = _summed(said.values())
    # Probabilities and plain points are never averaged together.
    probable = all(each.probability is not None for each in said.values())
    mean = fmean(_answer_score(each, probable) for each in said.values())
    labels = [each.preference for each in said.values()]
    preference = combine(options.order_rule, labels)
    if options.order_rule == "score_mean":
        preference = prefer(scores or {"A": mean, "B": 1 - mean})
    sure = [e.probability for e in said.values() if probable and e.preference == preference]
    certain = [probability for probability in sure if probability is not None]
    reason = reason if isinstance(reason, str) else reason.get(preference, "")
    words = ["A tie." if preference == "tie" else f"{preference} is better."]
    if disagree(labels):
        each = [f"{label} ({ORDER_NAMES[o]})" for o, label in zip(said, labels, strict=True)]
        words.append(f"The orders disagree: {', '.join(each)}.")
    return {
        **verdicts.not_judged(**account.booked, rationale=" ".join([*words, reason]).strip()),
        "preference": preference,
        "score": beside(preference, mean),
        "scores": scores,
        "confidence": fmean(certain) if certain else None,
        "confidence_source": "logprobs" if certain else "scores" if scores else "none",
        "flipped": disagree(labels),
    }


def first_reason(said: Iterable[Mapping[str, Any]], field: str = "explanation") -> str:
    """The first reason that is not empty, with the order of the texts that it was given in.

    It may call them first and second in words of its own.

    Args:
        said: What calls answered, each with its `order`.
        field: Of the reason.
    """
    told = (f"With {ORDER_NAMES[each['order']]}: {each[field]}" for each in said if each[field])
    return next(told, "")


def _as_answer(said: verdicts.Preference | Mapping[str, float] | OrderAnswer) -> OrderAnswer:
    if isinstance(said, OrderAnswer):
        return said
    return OrderAnswer(said) if isinstance(said, str) else OrderAnswer(prefer(said), None, said)


def _answer_score(said: OrderAnswer, probable: bool) -> float:
    if said.score is not None:
        return said.score
    if not probable or said.preference == "tie":
        return verdicts.POINTS[said.preference]
    # Of three labels one wins below a half; above it means A, whatever the method.
    likely = min(1.0, max(said.probability or 0.0, 0.5 + BARELY))
    return likely if said.preference == "A" else 1 - likely


def _summed(answers: Iterable[OrderAnswer]) -> dict[str, float] | None:
    """The scores of both texts over all orders; None if one order has none."""
    scores = [each.scores for each in answers]
    known = [each for each in scores if each]
    if len(known) < len(scores):
        return None
    return {side: float(sum(each[side] for each in known)) for side in ("A", "B")}


# How far a score stands on the side of a preference that its points do not show.
BARELY = 0.001


def beside(preference: verdicts.Preference, score: float) -> float:
    """A score on the side of the preference; 0.5 for a tie."""
    if preference == "tie":
        return 0.5
    return max(score, 0.5 + BARELY) if preference == "A" else min(score, 0.5 - BARELY)
