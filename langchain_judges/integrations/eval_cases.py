"""One case of an evaluation framework: how its fields are read, judged, and scored."""

from __future__ import annotations

import base64
import logging
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from threading import Lock
from typing import Any, NamedTuple, NotRequired, Unpack, cast

from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from langsmith.schemas import Run
from typing_extensions import TypedDict

from langchain_judges import errors, lazy
from langchain_judges import verdict as verdicts
from langchain_judges.asking import failures
from langchain_judges.integrations.right_answers import ReferenceReader, fields_returned
from langchain_judges.methods import describe
from langchain_judges.methods.rubric import criteria, replies
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.rows import documents, fields, lookup, record
from langchain_judges.rows.checks import OF_OUTPUT, kind_of_verdict
from langchain_judges.rows.data import holds_nothing, plain_data
from langchain_judges.rows.media import content_in, standard
from langchain_judges.rows.notes import notes_on
from langchain_judges.rows.texts import CONVERSATION, NO_TASK, OUTCOMES, Message, Text
from langchain_judges.rows.work import outputs_of, record_of_run, work_in
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import NOTES, Label, LabelVerdict, Notes, Verdict, comment_of

_LOGGER = logging.getLogger(__name__)
WORDS: Mapping[str, str] = lazy.packaged(__package__, "words.yaml")


def item_for(judge: object, task: Text, output: object, **more: object) -> dict[str, object]:
    """An `Item` with the given fields that are not None.

    Args:
        judge: The judge that gets it.
        task: What was asked.
        output: What is judged, in any form; None for a judge of what was retrieved.
        more: `expected`, `source` and `rubric`, in any form.

    Raises:
        InputError: The judge has nothing to judge it by.
    """
    given = {"input": task, "output": output, **more}
    item = fields.plain_row({name: value for name, value in given.items() if value is not None})
    check_basis_of(judge, item)
    return item


def pair_for(
    task: Text, a: object, b: object, *, reference: str | None = None, source: object = None
) -> dict[str, object]:
    """A `Pair` of texts in any form; a source is appended to the task as such."""
    if text := documents.context_in(source):
        own = {"role": "source", "content": content_in(source) or text}
        task = [*record.as_messages(task), own]
    pair: dict[str, object] = {"input": task, "output_a": a, "output_b": b}
    return fields.plain_row({**pair, "reference": reference} if reference else pair)


def check_basis_of(judge: object, item: Mapping[str, object]) -> None:
    """Check that an item has what a judge of this package judges by.

    Raises:
        InputError: It does not, so any verdict would be a guess.
    """
    if options := label_options(judge):
        options.check(item)


def label_options(judge: object) -> LabelOptions | None:
    """Options of a judge of one text of this package; None of any other judge."""
    options = getattr(describe.unwrapped(judge), "options", None)
    return options if isinstance(options, LabelOptions) else None


class TextSources(NamedTuple):
    """Place of each text."""

    input: lookup.TextSource = None
    output: lookup.TextSource = None
    reference: lookup.TextSource = None
    context: lookup.TextSource = None
    rubric: lookup.TextSource = None


class EvaluatedRow(NamedTuple):
    """The fields of one evaluated row.

    Attributes:
        called: Whether the reference comes from a caller, and not from a data set.
        attachments: Files of the example by name, as LangSmith has them, or as openevals does.
        work: The part of the outputs that is judged, with the tools of child runs and the error
            of the run, if it has any.
    """

    inputs: object
    outputs: object
    reference: object = None
    context: object = None
    called: bool = False
    attachments: Any = None
    work: object = None


class CaseReader:
    """Reads pairs and items from inputs, outputs and references."""

    def __init__(self, judge: Judge, places: TextSources) -> None:
        """Set where each text is found; nothing is read yet."""
        self.judge, self.kind, self.places = judge, describe.kind_of(judge), places
        lookup.check_sources(**places._asdict())
        options = label_options(judge)
        self._told, self._lock = set[str](), Lock()
        self._needs_source = describe.document_use(judge) == "source"
        self._judges_source = options is not None and options.judges_source
        compares = options is None or options.compares
        has_rubric = any(describe.option_of(e, "own_rubric") for e in describe.leaves_of(judge))
        self._right = ReferenceReader(places.reference, places.rubric, compares, has_rubric)

    def work_of(self, run: Run) -> object:
        """The work of a run, if child runs used tools, found documents or it failed; else None.

        Raises:
            InputError: The run failed, and has none.
        """
        work = outputs_of(run, self.places.output)
        return None if work is run.outputs else work

    def _done(self, row: EvaluatedRow) -> tuple[object, lookup.TextSource]:
        """The part of a row that is judged, and where in it the text is."""
        return (row.outputs, self.places.output) if row.work is None else (row.work, None)

    def of_runs(self, runs: Sequence[Run]) -> dict[str, object]:
        """The item of a run, or of those of a thread as one conversation, with the last one's id.

        Raises:
            InputError: The only run failed, or a text cannot be found.
        """
        *before, last = runs
        if before:
            return {**self._conversation(runs), "id": str(last.id)}
        row = EvaluatedRow(last.inputs, last.outputs, work=self.work_of(last))
        return {**self.case(row), "id": str(last.id)}

    def _conversation(self, runs: Sequence[Run]) -> dict[str, object]:
        said = thread_of(runs, self.places)
        work = (None if holds_nothing(run.outputs) else outputs_of(run) for run in runs)
        held = zip(runs, work, strict=True)
        source = self._source(*(EvaluatedRow(r.inputs, r.outputs, work=own) for r, own in held))
        task, text = (said, None) if self._judges_source else (CONVERSATION, said)
        item = item_for(self.judge, task, text, source=source)
        for run in runs:
            sides = zip((run.inputs, run.outputs), turn_of(run, self.places), strict=True)
            told = [(data, own[-1]["content"] if own else None) for data, own in sides]
            item = self._noted(item, input=told[0], output=told[1])
        return item

    def case(self, row: EvaluatedRow) -> dict[str, object]:
        """A `Pair` or an `Item`.

        Raises:
            InputError: A text cannot be found; the message says what was expected.
        """
        own = self.places
        if not callable(own.reference):  # else it is for a function
            row = row._replace(reference=plain_data(row.reference))
        # Without inputs the task is what stands at the beginning of the work.
        asked = fields.asked_in(*self._done(row)) if holds_nothing(row.inputs) else None
        none = NO_TASK if row.inputs is None and row.called and self.kind == "item" else None
        said = asked or none or fields.task_in(row.inputs, own.input)
        if before := fields.asked_before(row.inputs, *self._done(row)):
            resumed = record.as_messages(said)
            is_said = all(map(record.says_same, before[-len(resumed) :], resumed))
            said = before if is_said else [*before, *resumed]
        task = with_attachments(said, row.attachments)
        text: Any = None if self._judges_source else work_in(*self._done(row), task=before or task)
        source = self._source(row)
        read = {"input": (row.inputs, said), "output": (row.outputs, text)}
        named = self._variables(row.reference, row.outputs, row.inputs)
        returned, notes = fields_returned(row.outputs, text), Notes()
        if self.kind == "item":
            rubric, reference = self._right.criteria(row.inputs, row.reference, returned, notes)
            reference = self._right.answer(reference, notes, returned)
            expected = self._right.expected(reference, row.outputs, row.called, bool(rubric))
            more = {"expected": expected, "source": source, "rubric": rubric}
            done = plain_data(row.outputs)
            beside = documents.context_of(done) or documents.documents_on(done)
            more[OF_OUTPUT] = documents.context_in(beside) if source is None else None
            notes.columns = {n: p[n] for p in row[:3] if isinstance(p, Mapping) for n in p}
            item = item_for(self.judge, task, text, **more, **{NOTES: notes}) | named
            return self._noted(item, **read, reference=(reference, expected))
        answer = self._right.answer(row.reference, notes, returned)
        if answer is None or answer == {}:
            rest = "".join(f"; a reference {n['detail']}: name it by `reference=`" for n in notes)
            raise errors.InputError(f"`reference_outputs` has nothing to compare with{rest}")
        other = work_in(answer, own.reference, "reference", task=task)
        pair = pair_for(task, text, other, source=source) | named | {NOTES: notes}
        return self._noted(pair, **read, reference=(answer, other))

    def sides(
        self, row: EvaluatedRow, variables: Mapping[str, object], runs: Sequence[Run]
    ) -> dict[str, object]:
        """The pair of two runs for the same inputs, with the reference and further fields.

        Raises:
            InputError: A run failed, or a text cannot be found.
        """
        sides = [row._replace(outputs=run.outputs, work=self.work_of(run)) for run in runs]
        task = with_attachments(fields.task_in(row.inputs, self.places.input), row.attachments)
        source = self._source(row)
        a, b = (work_in(*self._done(side), task=task) for side in sides)
        held, notes = row.reference, Notes()
        returned = map(fields_returned, (run.outputs for run in runs), (a, b))
        answer, place = self._right.answer(held, notes, *returned), self.places.reference
        known = None if holds_nothing(answer) else fields.reference_in(answer, place)
        pair = pair_for(task, a, b, reference=known, source=source)
        pair |= {**self._variables(held, None, row.inputs), **variables, NOTES: notes}
        read = {"output_a": (runs[0].outputs, a), "output_b": (runs[1].outputs, b)}
        return self._noted(pair, input=(row.inputs, task), reference=(answer, known), **read)

    def _variables(self, *parts: object) -> dict[str, object]:
        """The fields that a prompt names, from the reference, the outputs and the inputs."""
        right, *told = (each if isinstance(each, Mapping) else {} for each in parts)
        # A right answer must not stand where a prompt means the one that is judged.
        other = {name: right[name] for name in right if name not in lookup.USUAL["output"]}
        known = {**other, **told[0], **told[1]}
        own = {name: known[name] for name in describe.fields_named(self.judge) if name in known}
        return {"variables": own} if own else {}

    def _noted(self, case: dict[str, object], **read: tuple[object, object]) -> dict[str, object]:
        """A case with notes on how it was read, where no place was named; see `notes_on`."""
        places = self.places._asdict()
        guessed = {n: plain_data(own) for n, own in read.items() if not places[n.split("_")[0]]}
        notes = notes_on(guessed, case)
        self._tell(notes.beside)
        return {**case, NOTES: notes} if notes or notes.columns else case

    def _tell(self, beside: Sequence[str]) -> None:
        """Warn, once of each, of keys beside a task that the judge is not shown."""
        with self._lock:
            new = [name for name in beside if name not in self._told]
            self._told.update(new)
        if new:
            _LOGGER.warning(WORDS["beside"], verdicts.first_names(new))

    def _source(self, *rows: EvaluatedRow) -> object:
        """The source of a row; of several, the turns of a conversation, each that there is, once.

        Raises:
            InputError: There is none, and a place is named for it or the judge needs one.
        """
        found, lack = list[object](), None
        for row in rows:
            try:
                source = self._source_of(row)
            except errors.InputError as exc:  # another turn may have it
                lack = exc
                continue
            if documents.context_in(source) is not None and source not in found:
                found.append(source)
        if lack and not found:
            raise lack
        if self._needs_source and not found:
            inputs, outputs, *_ = map(lookup.keys_in, rows[-1])
            raise errors.LackingError(WORDS["no_source"].format(inputs=inputs, outputs=outputs))
        return found if len(found) > 1 else next(iter(found), None)

    def _source_of(self, row: EvaluatedRow) -> object:
        if documents.context_in(row.context) is not None:
            return row.context
        # What a response was made of is no source of its task, unless a judge needs one.
        place = self.places.context
        found = self._done(row)[0] if self._needs_source else None
        return fields.source_in(row.inputs, row.outputs if place else found, place)


def turn_of(run: Run, places: TextSources) -> tuple[list[Message], list[Message]]:
    """The request of a run of a thread, and the record of what it did.

    Raises:
        InputError: There is no text at a place.
    """
    asked = None if holds_nothing(run.inputs) else fields.task_in(run.inputs, places.input)
    return [] if asked is None else record.as_messages(asked), record_of_run(run, places.output)


def thread_of(runs: Sequence[Run], places: TextSources) -> list[Message]:
    """The conversation that the runs of one LangSmith thread are, in time.

    Where an application or its graph keeps the history, inputs or outputs begin with what was
    said before: it is not repeated. What was said again is, and instructions that changed.
    """
    said: list[Message] = []
    for run in sorted(runs, key=lambda each: str(each.start_time)):
        talk = [each for each in said if each["role"] not in OUTCOMES]
        asked, done = turn_of(run, places)
        if talk:  # instructions may change from turn to turn
            rules = [each for each in asked if each["role"] == "system"]
            said += [m for m in rules if not any(record.says_same(m, each) for each in talk)]
            asked = [each for each in asked if each not in rules]
        asked = asked[_number_told(asked[:-1], talk) :]
        found = record.places_in(done, asked)
        if talk and any(each["role"] == "user" for each in done):
            told = _number_told(done[: found[-1]] if found else done, talk)
            done = done[next((n for n in found if n >= told), told) :]
        said += done if found else [*asked, *done]
    return said


def _number_told(messages: Sequence[Message], talk: Sequence[Message]) -> int:
    """Number of the first messages that stand in a talk, in its order."""
    rest = iter(talk)
    return len([*takewhile(lambda m: any(record.says_same(m, each) for each in rest), messages)])


def with_attachments(task: Text, attachments: Any) -> Text:
    """A task with the files of its example, each that has a name behind it."""
    blocks = attachment_blocks(attachments)
    if not blocks:
        return task
    if isinstance(task, str):
        return [{"role": "user", "content": [{"type": "text", "text": task}, *blocks]}]
    return [*task, {"role": "user", "content": blocks}]


def attachment_blocks(attachments: Any) -> list[dict[str, Any]]:
    """Attachments as content blocks.

    Args:
        attachments: Files by name, as a LangSmith example has them or is given them; or one
            or a list of openevals'.

    Raises:
        InputError: One is no image's address, `{"mime_type", "data"}` or content block.
    """
    if isinstance(attachments, Mapping) and all(
        isinstance(each, Mapping | tuple) for each in attachments.values()
    ):
        return [block for name in attachments for block in _named(name, attachments[name])]
    several = attachments if isinstance(attachments, list) else [attachments]
    return [_block(each) for each in several if each is not None]


def _named(name: str, file: Any) -> list[dict[str, Any]]:
    names = ("mime_type", "data")
    given = dict(zip(names, file, strict=False) if isinstance(file, tuple) else file)
    if reader := given.pop("reader", None):
        reader.seek(0)  # whoever was here before may have read it
        given["data"] = reader.read()
        reader.seek(0)
    return [{"type": "text", "text": f"Attached, {name}:"}, _block(given, name)]


_MEDIA = ("image", "audio", "video")
# Types of files that are text, as browsers and LangSmith name them.
_TEXT = re.compile(r"text/.*|.*[/+](x-)?(json|jsonl|ndjson|xml|yaml|toml|csv)")


def _block(attachment: Any, name: str = "") -> dict[str, Any]:
    given = {"type": "image", "url": attachment} if isinstance(attachment, str) else {}
    given = dict(attachment) if isinstance(attachment, Mapping) else given
    if isinstance(given.get("text"), str):
        return given
    mime = str(given.get("mime_type") or "").partition(";")[0].strip().lower()
    main, data = mime.partition("/")[0], given.get("data")
    kind = "file" if mime == "application/pdf" else main if main in _MEDIA else None
    if isinstance(data, bytes) and data:
        if _TEXT.fullmatch(mime):
            try:
                return {"type": "text", "text": data.decode("utf-8-sig")}
            except UnicodeDecodeError as exc:
                raise errors.InputError(WORDS["encoding"].format(name=name, mime=mime)) from exc
        coded = base64.b64encode(data).decode()
        return {"type": kind or "file", "base64": coded, "mime_type": mime}
    if not (block := standard({"type": kind, **given} | ({"mime_type": mime} if kind else {}))):
        raise errors.InputError(WORDS["attachment"].format(got=str(attachment)[:80]))
    return block


# The verdict of a judge of either kind; that of another runnable may lack fields.
CaseVerdict = Verdict | LabelVerdict


class JudgmentResult(TypedDict):
    """The part of a judge's result that another framework reads.

    Attributes:
        subscores: Those of a judge of pairs have other fields.
        of_row: Whether they are by criteria of the row itself.
        refused: Whether the case could not be read, and nothing was asked.
    """

    verdict: CaseVerdict
    subscores: NotRequired[list[replies.CriterionScore]]
    of_row: NotRequired[bool]
    refused: NotRequired[bool]


async def judge_case(
    judge: Judge, case: Mapping[str, object], **config: Unpack[RunnableConfig]
) -> JudgmentResult:
    """Judge one case, on a thread of its own, and return the judge's whole outcome.

    What a service fails is the verdict's failure.

    Raises:
        InputError: The case cannot be judged as it is.
        ModelAccessError: The provider rejects every call.
    """
    if getattr(describe.unwrapped(judge), "checkpointer", None):
        config["configurable"] = {"thread_id": str(uuid.uuid4())}
    # A judge of ours tells what lacks by the columns that the notes know.
    hidden = () if hasattr(describe.unwrapped(judge), "fields_named") else (NOTES,)
    row = {name: value for name, value in case.items() if name not in hidden}
    try:
        found = await describe.judgment_of(judge, describe.kind_of(judge), row, config)
    except Exception as exc:  # a judge of any kind may raise anything
        if isinstance(exc, errors.JudgeError) or failures.ends_the_run(exc) or failures.is_bug(exc):
            raise
        found = {"verdict": error_verdict(judge, exc)}
    told = verdicts.noted(found["verdict"], Notes.of(case))
    of_row = {} if isinstance(case.get("rubric"), str | None) else {"of_row": True}
    return cast("JudgmentResult", {**found, "verdict": told, **of_row})


# Inside somebody's agent a judge's tokens and events are no part of the agent's stream.
judge_aside = partial(judge_case, tags=[TAG_NOSTREAM])


async def outcome_or_refusal(
    judge: Judge, read: Callable[[], Mapping[str, object]], **config: Unpack[RunnableConfig]
) -> JudgmentResult:
    """Judge the case that is read, and return the outcome, or why it is not judged.

    Raises:
        ModelAccessError: The provider rejects every call.
    """
    try:
        return await judge_case(judge, read(), **config)
    except (errors.InputError, errors.OverBudget) as exc:
        return {"verdict": error_verdict(judge, exc), "refused": isinstance(exc, errors.InputError)}


def criteria_of(outcome: JudgmentResult, key: str) -> list[replies.CriterionScore]:
    """The sub-scores of a judge of one text with several criteria, or those of a row."""
    parts = outcome.get("subscores") or []
    if len(parts) < (1 if outcome.get("of_row") else 2) or kind_of_verdict(parts[0]) == "pair":
        return []
    if len(parts) == 1 and parts[0]["criterion"] == key:
        return []  # what the total says
    named: Any = {key: f"{key}.{key}"}  # a criterion of the row that is called as the total is
    return [{**p, "criterion": named.get(p["criterion"], p["criterion"])} for p in parts]


def reasons_of(outcome: JudgmentResult) -> str:
    """The reasons for whoever may write a text again, of each criterion that it does not meet too.

    Notes are left out: they tell people how the text was read.
    """
    verdict = outcome["verdict"]
    if verdicts.decision(verdict) is None:
        return comment_of(verdict)
    said = str(verdict.get("rationale") or "")
    missed = [part for part in criteria_of(outcome, "") if part.get("holds") is False]
    lines = [f"- {p['criterion']}: {p['reason']}" for p in missed if p["reason"] not in said]
    return "\n".join([said, *lines])


def error_verdict(judge: Judge, exc: Exception) -> CaseVerdict:
    """The verdict of a row that failed before it was judged."""
    without = verdicts.WITHOUT_ANSWER[describe.kind_of(judge)]
    return cast("CaseVerdict", without([failures.failure_of(exc, "judge")], verdicts.no_usage()))


_SHOWN = {"preference", "label", "confidence", "confidence_source", "flipped"}


def feedback_key(judge: Judge, given: str | None = None) -> str:
    """Key of a judge's feedback: the caller's, else its name, its rubric's, or its method.

    Raises:
        OptionError: One of its criteria gives feedback under that name.
    """
    key = given or _usual_key(judge)
    if key in (describe.option_of(judge, "parts") or ()):
        raise errors.OptionError(WORDS["key_of_criterion"].format(key=key))
    return key


def _usual_key(judge: Judge) -> str:
    if name := describe.option_of(judge, "name"):
        return str(name)
    rubric, own = describe.option_of(judge, "rubric"), describe.option_of(judge, "own_rubric")
    if isinstance(rubric, str) and rubric in criteria.ready_names():
        return rubric
    names = [str(each.name) for each in own.criteria] if own else []
    return names[0] if len(names) == 1 else str(describe.fingerprint_of(judge)["method"])


class CaseScore(NamedTuple):
    """One score of a row.

    Attributes:
        score: In [0, 1]; None: not judged.
        answer: The preference or the label; None: not judged.
        extra: The parts of the verdict that are shown next to its score; None for a criterion.
    """

    key: str
    score: float | None
    comment: str
    answer: Label | None
    extra: dict[str, object] | None = None

    @property
    def value(self) -> Label | None:
        """The label as people read it; None of a total, which has none."""
        return None if isinstance(self.answer, float) else self.answer


def scores_of(outcome: JudgmentResult, key: str) -> list[CaseScore]:
    """The total score under `key`, then that of each criterion under its name."""
    verdict = outcome["verdict"]
    answer, score = verdicts.decision(verdict), verdicts.score_of(verdict)
    scores = [CaseScore(key, score, comment_of(verdict), answer, _extra(verdict))]
    for part in criteria_of(outcome, key):
        reason = "Not judged." if part["label"] is None else part["reason"]
        scores.append(CaseScore(part["criterion"], part["score"], reason, part["label"]))
    return scores


def _extra(verdict: CaseVerdict) -> dict[str, object]:
    usage = verdict.get("usage") or verdicts.no_usage()
    extra = {name: value for name, value in verdict.items() if name in _SHOWN}
    extra["failures"] = [dict(failure) for failure in verdict.get("failures") or []]
    counts = ("calls", "input_tokens", "output_tokens")
    extra["usage"] = {name: count for name, count in usage.items() if name in counts}
    if verdicts.decision(verdict) is None:
        extra["reason"] = verdicts.reason_of(verdict)
    return extra
