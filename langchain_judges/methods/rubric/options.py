"""The options of the judge of one text by criteria of the caller's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Self

from annotated_types import Ge
from langchain_core.prompts import ChatPromptTemplate
from pydantic import SkipValidation, model_validator

from langchain_judges.asking.models import ModelLike
from langchain_judges.asking.own_prompts import ONLY, own_prompt, printed_messages
from langchain_judges.errors import InputError, LackingError, OptionError
from langchain_judges.methods.declaration import Written, check_quorum
from langchain_judges.methods.lookups import LookupOptions
from langchain_judges.methods.rubric import criteria as rubrics
from langchain_judges.methods.rubric.prompts import ANSWER_PROMPTS, CLAIM_PROMPTS, PROMPTS
from langchain_judges.options import Rule
from langchain_judges.rows import documents, fields, texts
from langchain_judges.rows.checks import OF_OUTPUT, expected_answers, fields_of, lacking
from langchain_judges.rows.record import answers_in, as_messages, last_turn
from langchain_judges.verdict import Label

# Stands for what a search found, where it found nothing.
NOTHING_FOUND = "(nothing was found)"
# What is judged where nobody says it, by what a row brings.
BASES: Mapping[str, str] = {"expected": "correctness", "source": "groundedness"}

# The prompts that ask for the label of one criterion, and all that ask for labels.
_ALONE = ("evaluate", "answer")
_ASKING = {*_ALONE, "criteria", "each"}


class LabelOptions(LookupOptions):
    """The options of judges that label one text.

    Attributes:
        labels: Labels of criteria without their own, lowest first. Default 0 (no) and 1 (yes).
        steps: How to judge, step by step; default the rubric's own steps.
        explain: When the reason is asked: `"first"`, before the label, or `"none"`.
        abstain: Let the model say that the material is insufficient: no label, reason
            `cannot_assess`.
        last_turn: Judge only the last reply of a conversation.
        best: The better end of the labels, the first or the last of them; default the last.
        needs: What a row must have, besides what a ready rubric needs, or it is not judged
            (`lacking`): `"expected"`, `"source"`, `"calls"` of tools, `"image"`, `"audio"`,
            `"conversation"`, an agent's `"instructions"`.
    """

    takes = "item"
    templates = PROMPTS
    examples_in = ("evaluate",)

    steps: Annotated[Sequence[Written] | None, Rule("a list of texts, none empty")] = None
    explain: rubrics.Explain = "first"
    abstain: bool = False
    last_turn: bool = False
    labels: rubrics.Labels | None = None
    best: Label | None = None
    needs: rubrics.Needs = ()

    @model_validator(mode="before")
    @classmethod
    def _oriented(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        named = values.get("rubric")
        is_ready = isinstance(named, str) and named in rubrics.ready_names()
        usual = None if is_ready else rubrics.scale_in(named) or rubrics.YES_NO
        own = cls.model_fields["labels"].default or usual
        if values.get("best") is not None and own:
            values = {"labels": own, **values}
        return rubrics.oriented(values, rubrics.JUDGE)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        given: Any = self.prompts or ()  # read: a mapping
        own = _ASKING.intersection(given)
        criteria = self.own_rubric.criteria if self.own_rubric else ()
        for each in criteria:
            also = (self.instructions or "") * (len(criteria) == 1)
            for doubt in (each.doubt, rubrics.other_scale(also, each.names)):
                rubrics.tell_scale(doubt)
        if self.own_rubric and own and self.judging not in own:
            raise OptionError(f"`prompts`: it asks by {self.judging!r}, got {sorted(own)!r}")
        return self

    @property
    @abstractmethod
    def own_rubric(self) -> rubrics.Rubric | None:
        """The rubric of the judge; None: by what a row brings."""

    @property
    def prompted(self) -> rubrics.Rubric | None:
        """The rubric of a prompt of the caller's own, where it shows no criteria of another."""
        own = self.prompts if isinstance(self.prompts, Mapping) else {}
        for prompt in [own_prompt("", own[each]) for each in (ONLY, *_ALONE) if each in own]:
            if "criteria" not in prompt.input_variables:
                said = "\n".join(printed_messages(prompt))
                rubrics.tell_scale(rubrics.other_scale(said, tuple(self.labels or rubrics.YES_NO)))
                return self.named({"score": "What the prompt asks holds."})
        return None

    @property
    def shown(self) -> frozenset[str]:
        """The parts of a prompt besides the response; the paper's prompts show no task."""
        return frozenset({"task", "criteria", "steps"})

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompts that are used with these options."""
        return PROMPTS if "task" in self.shown else ANSWER_PROMPTS

    def prompt_of(self, criteria: Sequence[rubrics.Criterion]) -> str:
        """The prompt by which an item is judged by some criteria."""
        if len(criteria) > 1:
            return "each" if getattr(self, "each", False) else "criteria"
        return "evaluate" if "task" in self.shown else "answer"

    @property
    def judging(self) -> str:
        """The step of a caller's one prompt."""
        return self.prompt_of(self.own_rubric.criteria if self.own_rubric else ())

    @property
    def filled(self) -> set[str]:
        """The options that are set; a ready rubric may have steps."""
        return super().filled | ({"steps"} if self.own_rubric and self.own_rubric.steps else set())

    @property
    def models(self) -> Mapping[str, ModelLike | None]:
        """The steps that ask a model."""
        return {"evaluate": None}

    @property
    def needed(self) -> rubrics.Needs:
        """The parts that a row must have, by the rubric or by the caller."""
        return (*self.own_rubric.needs, *self.needs) if self.own_rubric else self.needs

    @property
    def needs_source(self) -> bool:
        """Whether texts are compared with a source."""
        return "source" in self.needed or self.judges_source

    @property
    def document_use(self) -> str | None:
        """The use of documents beside an answer; a ready rubric is about none but a source."""
        is_ready = getattr(self, "rubric", None) in rubrics.ready_names()
        return "source" if self.needs_source else None if is_ready else "hidden"

    @property
    def judges_source(self) -> bool:
        """Whether the source of a row is what is judged, and no output is needed."""
        return self.own_rubric is not None and self.own_rubric.judges == "source"

    def given(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row as this judge takes it: what is judged as its output."""
        if self.judges_source and not row.get("rubric"):
            read = fields.plain_row(row)
            kept = {n: read[n] for n in read if n not in {*documents.CONTEXTS, OF_OUTPUT}}
            source = read.get("source") or read.get(OF_OUTPUT) or NOTHING_FOUND
            return {"input": None, **kept, "output": source}
        if not self.last_turn:
            return row
        row = fields.plain_row(row)
        output, task = row.get("output"), row.get("input")
        if isinstance(output, str) or not output:
            return row
        before, last = last_turn(output)
        asked = [] if task == texts.CONVERSATION and before else as_messages(task)
        return {**row, "input": [*asked, *before], "output": last}

    def rubric_of(self, item: Mapping[str, object]) -> rubrics.Rubric:
        """The rubric of an item: its own, the judge's, or what fits it.

        Raises:
            InputError: There is nothing to judge by.
        """
        if own := item.get("rubric"):
            try:
                return self.named(rubrics.checked_name(own) if isinstance(own, str) else own)
            except OptionError as exc:
                raise InputError(str(exc)) from exc
        if self.own_rubric:
            return _counting(self.own_rubric, item)
        basis = next((field for field in BASES if item.get(field)), None)
        if basis is None:
            raise LackingError(rubrics.REFUSALS["no_basis"].format(fields=fields_of(item)))
        return self.named(BASES[basis])

    def named(self, value: Any) -> rubrics.Rubric:
        """The ready rubric of a name, or the criteria that a caller or a row gives.

        With the options' labels, also in place of those of a ready rubric.
        """
        if isinstance(value, str) and value in rubrics.ready_names():
            rubric = rubrics.ready_rubric(value)
            criteria = tuple(_relabelled(each, self.labels) for each in rubric.criteria)
            return rubric.model_copy(update={"criteria": criteria})
        return self.labelled(rubrics.Rubric(criteria=rubrics.read_rubric(value)))

    def labelled(self, rubric: rubrics.Rubric) -> rubrics.Rubric:
        """A rubric with the options' labels where its criteria have none."""
        criteria = tuple(c.with_labels(self.labels, self.best) for c in rubric.criteria)
        return rubric.model_copy(update={"criteria": criteria})

    def check(self, item: Mapping[str, object]) -> None:
        """Check that there is something to judge an item by.

        Raises:
            InputError: There is not, so any verdict would be a guess.
        """
        self.rubric_of(item)

    def lacking(self, item: Mapping[str, object]) -> str:
        """The lack of what the rubric of an item is about; empty: none."""
        rubric = self.rubric_of(item)
        if rubric.judges == "source" and item.get("output") == NOTHING_FOUND:
            return lacking({**item, "source": None}, ["source"])
        return lacking(item, (*rubric.needs, *self.needs))

    @property
    def human_labels(self) -> tuple[Label, ...]:
        """The labels that people may give a text; empty: any, where there is a total."""
        rubric = self.own_rubric
        if rubric is None:
            return tuple(self.labels or (0, 1))
        return rubric.criteria[0].names if len(rubric.criteria) == 1 else ()

    @property
    def parts(self) -> Mapping[str, Sequence[Label]]:
        """The sub-scores that every row gets besides its total: by name their labels."""
        criteria = self.own_rubric.criteria if self.own_rubric else ()
        return {each.name: each.names for each in criteria if len(criteria) > 1}

    @property
    def compares(self) -> bool:
        """Whether it compares with a reference where it finds one."""
        return self.own_rubric is None or "expected" in self.needed


def _counting(rubric: rubrics.Rubric, item: Mapping[str, object]) -> rubrics.Rubric:
    """A rubric whose scale counts documents with one that ends at their number."""
    number = documents.documents_in(str(item.get("output"))) if rubric.counts else 0
    ends = rubric.criteria[0].scale
    if not ends or not 0 < number < ends[1]:
        return rubric
    [criterion] = rubric.criteria
    anchors = {min(place, number): text for place, text in criterion.anchors.items()}
    own = {**dict(criterion), "scale": (ends[0], number), "anchors": anchors}
    return rubric.model_copy(update={"criteria": (rubrics.Criterion(**own),)})


def _relabelled(
    criterion: rubrics.Criterion, labels: rubrics.LabelsLike | None
) -> rubrics.Criterion:
    own = [*map(str, criterion.names)]  # what they mean stands in its file
    if labels is None or (not isinstance(labels, Mapping) and [*map(str, labels)] == own):
        return criterion
    low, high = (criterion.meanings.get(criterion.names[place], "") for place in (0, -1))
    if low and high and not isinstance(labels, Mapping):
        # The ends of a finer scale mean what the ends of the rubric's own do.
        labels = {**dict.fromkeys(labels, ""), labels[0]: low, labels[-1]: high}
    bare: dict[str, Any] = dict.fromkeys(("labels", "best", "scale", "least")) | {"anchors": {}}
    return rubrics.Criterion(**{**dict(criterion), **bare}).with_labels(labels, [*labels][-1])


class RubricOptions(LabelOptions):
    """Create a judge of one text with your own criteria or a ready rubric.

    All criteria go into one call; each is answered by a reason and one of its labels.

    Attributes:
        rubric: A ready rubric's name, a text, a list of criteria (`"name"`, `"name:
            description"`, the fields of a `Criterion`), or a mapping of names to descriptions.
            Default: correctness if a row has `expected`, else groundedness.
        file: A YAML or JSON file that holds the rubric.
        each: Ask each criterion in its own call.
        min_valid: Fewest criteria that must be judged for a verdict; default more than half.
        claims: Judge correctness or groundedness claim by claim, in two calls
            (arXiv:2509.16093).

    Returns:
        A compiled graph from `Item` to `{"verdict", "subscores"}`, with a memory `recalled`
        too. Each subscore is `{"criterion", "label", "best", "score", "weight", "holds",
        "required", "reason", "confidence", "confidence_source"}`. With one criterion the
        verdict is its label and score; with several both are the total in [0, 1]: the mean of
        the scores by weight, 0 where a required criterion does not hold. With `claims` the
        result has `claims` too, each `{"claim", "of", "supported", "reason"}`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model cannot be made.

    Example:
        >>> from langchain_judges import create_rubric_judge
        >>> judge = create_rubric_judge("local", rubric=[
        ...     {"name": "Tone", "description": "Is the reply polite?", "weight": 2},
        ...     {"name": "Length", "scale": (1, 5), "anchors": {1: "rambles", 5: "brief"}},
        ... ])  # doctest: +SKIP
        >>> reply = {"input": "Where is my parcel?", "output": "It comes today."}
        >>> verdict = judge.invoke(reply)["verdict"]  # doctest: +SKIP
        >>> verdict["score"]  # doctest: +SKIP
        1.0
    """

    method = "rubric"
    summary = "Rubric: one text by criteria of your own, or by a ready rubric."
    presets = {name: {"rubric": name} for name in rubrics.ready_names()}
    result_tables = {"subscores": "Scores by criterion", "claims": "Claims"}
    templates = {**PROMPTS, **CLAIM_PROMPTS}
    results = ("subscores", "claims")

    rubric: Annotated[
        rubrics.RubricLike | None,
        SkipValidation,
        Rule("a name, a text, a list or a mapping of criteria, or None"),
    ] = None
    file: rubrics.RubricFile = None
    each: bool = False
    min_valid: Annotated[int, Ge(1)] | None = None
    claims: bool = False

    @model_validator(mode="after")
    def _check(self) -> RubricOptions:
        if self.rubric is not None and self.file is not None:
            raise OptionError("give `rubric` or `file`, not both")
        if isinstance(self.rubric, str):
            rubrics.checked_name(self.rubric)
        check_quorum(self.min_valid, self._most)
        if self.claims and self.own_rubric and not _can_split(self.own_rubric):
            raise OptionError(rubrics.REFUSALS["claims"])
        for name in ("abstain", "each", "labels", "memory", "min_valid", "steps"):
            if self.claims and getattr(self, name):
                raise OptionError(f"`{name}` does not go with `claims`")
        return self

    def given(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row as this judge takes it: claim by claim only the answers of an agent's work."""
        row = super().given(row)
        read = fields.plain_row(row) if self.claims else {}
        said = read.get("output")
        return {**read, "output": answers_in(said)} if said and isinstance(said, list) else row

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompts that are used with these options."""
        return CLAIM_PROMPTS if self.claims else super().prompt_texts

    @property
    def models(self) -> Mapping[str, ModelLike | None]:
        """The steps that ask a model."""
        return dict.fromkeys(CLAIM_PROMPTS) if self.claims else super().models

    @cached_property
    def own_rubric(self) -> rubrics.Rubric | None:
        """The rubric of the judge; None: by what a row brings."""
        if self.rubric is not None:
            return self.named(self.rubric)
        if isinstance(self.file, rubrics.Rubric):
            return self.labelled(self.file)
        return self.prompted

    @property
    def assumed(self) -> list[str]:
        """Sentences that say which labels count as good though nobody said so."""
        is_ready = isinstance(self.rubric, str) and self.rubric in rubrics.ready_names()
        own = self.own_rubric.criteria if self.own_rubric and not is_ready else ()
        return [each.assumed for each in own if each.assumed]

    @property
    def human_labels(self) -> tuple[Label, ...]:
        """The labels that people may give a text; empty: any, where there is a total."""
        return () if self.claims else super().human_labels

    @property
    def parts(self) -> Mapping[str, Sequence[Label]]:
        """The sub-scores that every row gets besides its total: by name their labels."""
        if not self.own_rubric or not self.claims:
            return super().parts
        shares = ("precision", "recall") if "expected" in self.own_rubric.needs else ()
        return dict.fromkeys(shares, ())

    def check(self, item: Mapping[str, object]) -> None:
        """Check that an item brings what its rubric compares a text with.

        Raises:
            InputError: It does not, so any verdict would be a guess.
        """
        super().check(item)
        if not self.claims:
            return
        rubric = self.rubric_of(item)
        if not _can_split(rubric):
            raise InputError("claim by claim only correctness and groundedness are judged")
        if "expected" in rubric.needs and (number := len(expected_answers(item))) > 1:
            raise InputError(f"`expected`: claim by claim one answer is compared, saw {number}")

    @property
    def _most(self) -> int:
        """The most criteria that an item is judged by."""
        return len(self.own_rubric.criteria) if self.own_rubric else 1

    def calls(self) -> int:
        """The calls for one item, excluding repairs."""
        return self.lookup_rounds + (2 if self.claims else self._most if self.each else 1)

    def fingerprint(self) -> dict[str, Any]:
        """Plain data that decides verdicts, besides the options: what a name or a file says."""
        if self.own_rubric is None:
            return {}
        return {"criteria": self.own_rubric.as_json(), "labels": list(self.human_labels or (0, 1))}


def _can_split(rubric: rubrics.Rubric) -> bool:
    """Whether a rubric can be judged claim by claim: correctness or groundedness."""
    bases = [BASES.get(need) for need in rubric.needs]
    return len(rubric.criteria) == 1 and rubric.criteria[0].name in bases
