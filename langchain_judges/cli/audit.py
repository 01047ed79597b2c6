"""`langchain-judges audit`: find a judge's mistakes, have them audited, remember them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from langchain_judges.cli import judge_flags, messages, row_files, terminal
from langchain_judges.cli.flags import PlanFlags, RowFlags, unfolded
from langchain_judges.cli.messages import ctrl_c_as_exit, error_console, langsmith_client, say
from langchain_judges.errors import OptionError, needs
from langchain_judges.escaping import InertConsole, inert_json
from langchain_judges.options import unknown_option
from langchain_judges.report.labelling import AnswerFile
from langchain_judges.rows.files import write_text, writing
from langchain_judges.runs import sources, summary

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_judges.methods.allure.state import AuditRequest
    from langchain_judges.methods.graph import JudgeGraph
    from langchain_judges.viewer.desks import ProposalDesk


@dataclass(frozen=True)
class AuditedFlags(judge_flags.JudgeFlags):
    """The judge that is audited, and its memory.

    Attributes:
        memory: File of the memory; created if missing.
    """

    method: str = field(default="allure", init=False)
    spec: Path | None = field(default=None, init=False)
    memory: Path = field(kw_only=True)
    parts: ClassVar[Sequence[str]] = ("audit", "check", "model")


@dataclass(frozen=True)
class AuditFlags(PlanFlags):
    """Settings of an audit, and the file of its result.

    Attributes:
        check: The check that finds likely mistakes: answer_or_label, exact,
            normalised_sequence, set, numeric, pattern or annotated.
        auditor: Who decides: human, at the terminal; page, a person in a browser, where each
            proposal is shown whole; labels (those of the items); or the name of a model.
            Default: human; labels for the runs of a queue.
        dev: Share of the items to hold out, by group; they decide what enters the memory.
        out: Write the whole result, as JSON.
    """

    check: str = "answer_or_label"
    auditor: str | None = None
    dev: float | None = None
    out: Annotated[Path | None, typer.Option("--out", "-o")] = None


@unfolded
def audit(items: Path, judge: AuditedFlags, flags: AuditFlags, table: RowFlags) -> None:
    """Audit a judge's labels, one doubtful label at a time; the same command resumes.

    Exit codes: 0 done or stopped at the terminal, 2 wrong use or refused, 3 budget spent,
    130 Ctrl-C.

    Args:
        items: Table of items with input, output, and expected or a label by people; or
            langsmith:QUEUE of labelled runs.

    Examples:
        langchain-judges audit items.jsonl --model openai:gpt-5-mini --memory memory
        langchain-judges audit items.jsonl --model local --memory memory --check exact
    """
    from langchain_judges.methods.allure.label_checks import CHECKS
    from langchain_judges.methods.registry import estimate_calls, named

    is_queue = str(items).startswith(messages.LANGSMITH)
    with ctrl_c_as_exit(Path(f"{judge.memory}.audit")):
        row_files.check_not_read([items], [flags.out])
        if flags.out:
            row_files.check_file("--out", flags.out)
        # The memory may be missing yet.
        spec = judge_flags.judge_spec(replace(judge, memory=None))  # type: ignore[arg-type]
        maker = named(CHECKS, flags.check, "check")
        of_check = _set_of("check", judge.option, signature(maker).parameters)
        settings = {
            "auditor": flags.auditor or ("labels" if is_queue else "human"),
            "dev": flags.dev,
            **_set_of("audit", judge.option, _settable()),
        }
        try:
            check = maker(**of_check)
        except TypeError as exc:
            raise OptionError(f"the check {flags.check!r}: {exc}") from exc
        read = _queued if is_queue else row_files.judge_rows
        good = row_files.checked_rows(read(items, table, spec), "item to judge")
        plan = estimate_calls(spec)
        judge_flags.tell_plan(plan, good.number, good.size, flags, spec, next(iter(good)))
        _tell_rounds(good.number * plan.calls, settings)
        messages.tell_kept(Path(f"{judge.memory}.audit"))
        if flags.dry_run:
            return
        if on_page := settings["auditor"] == "page":
            settings["auditor"] = "human"
        marks = [flags.check, of_check, settings]
        options = {**settings, "check": check}
        budget = {name: value for name, value in flags.options().items() if name != "out"}
        result = _run(spec, judge.memory, list(good), options, marks, budget, on_page=on_page)
        if result is not None:
            _show(result, flags.out)


def _queued(path: Path, table: RowFlags, spec: Mapping[str, Any]) -> row_files.RowFile:
    """The runs of a queue that people labelled."""
    from langchain_judges.integrations.langsmith_runs import labelled_runs
    from langchain_judges.methods.registry import load_judge

    columns = row_files.named_columns(table.column, ("label", *row_files.PLACES)) or {}
    judge = load_judge({**spec, "model": judge_flags.keyless(spec["model"])})
    queue = str(path).removeprefix(messages.LANGSMITH)
    with langsmith_client() as client:
        key = columns.pop("label", None)
        places = {row_files.PLACES[field]: place for field, place in columns.items()}
        found = labelled_runs(client, queue, judge, key=key, **places)
    if found.left_out:
        id, reason = found.left_out[0]
        say(f"Runs of {queue!r} left out: {len(found.left_out)}; {id}: {reason}.")
    return row_files.RowFile(
        path, sources.Source(found.items[: table.max_rows], False, check=row_files.check_of(spec))
    )


def _set_of(part: str, settings: Sequence[str] | None, takes: Iterable[str]) -> dict[str, Any]:
    """Options given by `--set PART.NAME=VALUE`.

    Raises:
        OptionError: The part has no such option.
    """
    options = judge_flags.options_of_part(part, settings)
    for name in options.keys() - set(takes):
        raise unknown_option(part, name, tuple(takes))
    return options


def _settable() -> set[str]:
    """The options of an audit that no flag sets."""
    from langchain_judges.methods.allure.state import AuditOptions

    names = AuditOptions.__annotations__.keys() & AuditOptions.model_fields.keys()
    return names - {"check", "auditor", "dev", "labels", "max_concurrency"}


def _tell_rounds(calls: int, settings: Mapping[str, Any]) -> None:
    """Sentence about the calls of later rounds, and of a model that audits."""
    from langchain_judges.methods.allure.state import AuditOptions

    rounds = settings.get("max_rounds", AuditOptions.defaults()["max_rounds"])
    if rounds > 1:
        most = summary.counted(rounds * calls, "call")
        say(messages.WORDS["first_round"].format(rounds=rounds, most=most))
    if settings["dev"] is not None:
        say("In addition, examples are tried on the items held out by --dev.")
    if (auditor := settings["auditor"]) not in {"human", "labels", "page"}:
        judge_flags.check_model({"name": auditor})
        say(f"{auditor} is asked once about each doubted label, at most once an item a round.")


def _run(  # noqa: PLR0913 - what a command was told, part by part
    spec: Mapping[str, Any],
    path: Path,
    items: list[dict[str, object]],
    options: dict[str, Any],
    marks: object,
    budget: Mapping[str, Any],
    *,
    on_page: bool,
) -> dict[str, Any] | None:
    """Audit a judge, with its state next to the memory's file, until people stop or it ends.

    Args:
        spec: The judge, without its memory.
        path: The memory's file; the state is in `<path>.audit`.
        items: The items.
        options: Of the audit.
        marks: What of them decides; a slower run resumes the same audit.
        budget: Its calls in flight, calls, dollars and prices, as of a run over rows.
        on_page: Whether people decide in a browser.

    Returns:
        The result, None where people stopped.
    """
    # Loaded here: a dry run needs nothing of it.
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.types import Command

    from langchain_judges.asking.limiter import RowInRun
    from langchain_judges.asking.question import within_run
    from langchain_judges.asking.reply_log import key_of
    from langchain_judges.memory.failure_memory import FailureMemory
    from langchain_judges.methods.allure.audit import create_allure_audit
    from langchain_judges.methods.describe import metadata_of
    from langchain_judges.methods.graph import is_unfinished
    from langchain_judges.methods.registry import load_judge
    from langchain_judges.runs.options import CallLimits
    from langchain_judges.runs.results import locked
    from langchain_judges.runs.run_state import limiter_of

    memory = FailureMemory(path=path)
    judge = load_judge({**spec, "options": {**spec["options"], "memory": memory}})
    limiter = limiter_of(judge, CallLimits(**budget))
    options["max_concurrency"] = limiter.max_in_flight
    own = {name: value for name, value in metadata_of(judge).items() if name != "calls"}
    thread = key_of([items, own, marks])[:16]
    config = within_run({"configurable": {"thread_id": thread}}, RowInRun(limiter, 0))
    state_file = Path(f"{path}.audit")
    with writing(state_file):
        state_file.touch(0o600)
    with locked(state_file, state_file), SqliteSaver.from_conn_string(str(state_file)) as saver:
        loop = create_allure_audit(judge, memory, **options, checkpointer=saver)
        state = loop.get_state(config)
        step: Any = None  # goes on where the audit was interrupted
        if state.values.get("stopped") and not is_unfinished(state):
            say(messages.WORDS["audit_finished"])
        elif not is_unfinished(state):
            step = {"items": items}
        while step or is_unfinished(state):
            file = None
            if state.interrupts:
                draft = path.with_name(f"{path.name}.review-{thread}")
                if (file := _review(state.interrupts[0].value, draft, on_page)) is None:
                    return None
                step = Command(resume=file.answers)
            _work(loop, step, config)
            if file:
                file.path.unlink(missing_ok=True)
            state, step = loop.get_state(config), None
    return {key: state.values.get(key) for key in loop.output_channels}


def _work(audit: JudgeGraph, start: Any, config: RunnableConfig) -> None:
    """Work until people are asked or the audit ends, and show the progress."""
    items = calls = 0
    with error_console().status("judging") as status:
        for event in audit.stream(start, config, stream_mode="custom"):
            if event["kind"] == "verdict":
                items += 1
                calls += event["data"]["usage"]["calls"]
                status.update(f"judged {items:,} items, {calls:,} calls")


def _review(request: AuditRequest, draft: Path, on_page: bool) -> AnswerFile | None:
    """Have the proposals of a round answered by a person, and each answer kept in a file.

    Returns:
        The file, None if the person stops before the end.
    """
    from langchain_judges.viewer.desks import ProposalDesk

    path = draft.with_name(f"{draft.name}-{request['round']}.jsonl")
    asked = request["proposals"]
    with contextlib.closing(AnswerFile(path, lambda answer: str(answer.get("id")))) as file:
        for id in file.answers.keys() - {each["id"] for each in asked}:
            file.answers.pop(id)  # a killed run may have taken those that are no longer asked
        desk = ProposalDesk(request, file)
        if on_page:
            _decide_on_page(desk)
        else:
            done = [*desk.touched()]
            terminal.Terminal(InertConsole(), terminal.read_key, desk).go_through(
                [(place, "") for place in range(len(asked)) if place not in done],
                [(place, "") for place in done],
            )
        left = len(asked) - len([*desk.touched()])
    if not left:
        return file
    say(f"Proposals without an answer: {left} of {len(asked)}. The same command resumes here.")
    return None


def _decide_on_page(desk: ProposalDesk) -> None:
    """Have proposals decided in a browser until Enter."""
    with needs("viewer", "The page"):
        from langchain_judges.viewer.app import Page, Server

    server = Server(Page(desk.found, desk)).start()
    say(f"Decide {summary.counted(len(desk.proposals), 'proposal')} at {server.address}")
    with contextlib.suppress(EOFError):
        error_console().input("Enter goes on with the audit. ")
    server.close()


def _show(result: Mapping[str, Any], out: Path | None) -> None:
    from langchain_judges.report.terminal import audit_report

    InertConsole().print(audit_report(result))
    if out is not None:
        write_text(out, inert_json(json.dumps(result, ensure_ascii=False, indent=1)))
