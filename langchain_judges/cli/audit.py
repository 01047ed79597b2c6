"""`langchain-judges audit`: find a judge's mistakes, have them audited, remember them."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from langchain_judges.cli.audit_review import (
    Desk,
    Review,
    read_key,
    write_text,
)
from langchain_judges.cli.flags import Concurrency, DryRunFlags, RowFlags, Without, unfolded
from langchain_judges.cli.judges import (
    ModelJudgeFlags,
    NamedJudge,
    chat_model,
    check_model,
    named_judge,
    open_memory,
    setting,
    settings_as_flags,
)
from langchain_judges.cli.messages import (
    INTERRUPTED,
    SIGNALS,
    error_console,
    langsmith_client,
    leave_at_once,
    refusals_as_exits,
    tell_stopping,
)
from langchain_judges.cli.plan import tell_dry_run
from langchain_judges.cli.rows import (
    RowFile,
    check_not_read,
    check_of,
    checked_rows,
    judge_rows,
    named_columns,
)
from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.escaping import InertConsole, inert_json
from langchain_judges.runs.sources import Source

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_judges.memory.recall import Memory
    from langchain_judges.methods.allure.checks import Check
    from langchain_judges.methods.allure.review import AuditRequest
    from langchain_judges.methods.allure.state import AuditResult, VerdictsById
    from langchain_judges.methods.graph import JudgeGraph


@dataclass
class Session:
    """An audit that resumes where it stopped."""

    audit: JudgeGraph
    items: list[dict[str, object]]
    config: RunnableConfig
    drafts: Path
    """The files of answers to rounds that are not complete, without the round's number."""

    @property
    def name(self) -> str:
        """What tells this audit from others."""
        return str(self.config["configurable"]["thread_id"])

    @property
    def waiting(self) -> AuditRequest | None:
        """What people are to decide; None if there is nothing."""
        interrupts = self.audit.get_state(self.config).interrupts
        return cast("AuditRequest", interrupts[0].value) if interrupts else None

    @property
    def result(self) -> AuditResult | None:
        """The result of a finished audit; None before."""
        state = self.audit.get_state(self.config)
        ended = state.values.get("stopped") and not state.next
        return cast("AuditResult", state.values) if ended else None

    def work(
        self, errors: Console, answers: Sequence[Mapping[str, object]] | None = None
    ) -> None:
        """Work until people are asked or the audit ends, and show the progress."""
        from langgraph.types import Command

        start: Any = Command(resume=answers) if answers is not None else None
        if start is None and not self.audit.get_state(self.config).next:
            start = {"items": self.items}
        items = calls = 0
        with errors.status("judging") as status:
            for update in self.audit.stream(start, self.config, stream_mode="updates"):
                for verdicts in _verdicts(update):
                    items += len(verdicts)
                    calls += sum(each["usage"]["calls"] for each in verdicts.values())
                    status.update(f"judged {items:,} items, {calls:,} calls")


def _verdicts(update: dict[str, Any]) -> Iterator[VerdictsById]:
    for node in ("evaluate", "try"):
        yield from (update.get(node) or {}).values()


@contextmanager
def open_audit(
    judge: JudgeGraph,
    memory: Memory,
    path: Path,
    items: list[dict[str, object]],
    settings: dict[str, Any],
    decisions: str,
) -> Iterator[Session]:
    """Open the audit of some items by a judge, whose state stands beside the memory's file.

    Args:
        judge: The judge.
        memory: Its memory.
        path: The memory's file; the state is in `<path>.audit`.
        items: The items.
        settings: Keywords of `create_allure_audit`.
        decisions: All settings as a text; other settings make another audit.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    from langchain_judges.methods.allure.audit import create_allure_audit
    from langchain_judges.methods.describe import metadata_of

    marks = {name: value for name, value in metadata_of(judge).items() if name != "calls"}
    data = json.dumps([items, marks, decisions], sort_keys=True, default=str)
    thread = hashlib.sha256(data.encode()).hexdigest()[:16]
    with SqliteSaver.from_conn_string(f"{path}.audit") as saver:
        loop = create_allure_audit(judge, memory, **settings, checkpointer=saver)
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        yield Session(loop, items, config, path.with_name(f"{path.name}.review-{thread}"))


@dataclass(frozen=True)
class AllureFlags(ModelJudgeFlags):
    """The judge that is audited."""

    method: str = "allure"


@dataclass(frozen=True)
class AuditFlags:
    """How an audit goes, and where it is stored."""

    memory: Annotated[Path, typer.Option(help="File of the memory; made if missing.")]
    check: Annotated[str, typer.Option(help="The check that finds likely mistakes.")] = (
        "answer_or_label"
    )
    auditor: Annotated[
        str | None,
        typer.Option(
            help="Who decides: human, labels (those of the items) or the name of a model. "
            "Default: human; labels for the runs of a queue."
        ),
    ] = None
    dev: Annotated[
        float | None, typer.Option(help="Share of the items to hold out, by group.")
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the whole result, as JSON.")
    ] = None
    max_concurrency: Concurrency = None


_QUEUE = "langsmith:"
"""Begins the name of an annotation queue, in place of a file."""


@unfolded
def audit(
    items: Annotated[
        Path, typer.Argument(help="Table of items, or langsmith:QUEUE of labelled runs.")
    ],
    judge: Annotated[AllureFlags, Without("method", "spec", "model_set", "memory")],
    flags: AuditFlags,
    table: RowFlags,
    plan: DryRunFlags,
) -> None:
    """Audit a judge's labels, one doubtful label a screen; the same command resumes.

    Exit codes: 0 done or stopped at the terminal, 2 wrong use or refused, 130 Ctrl-C.
    """
    errors = error_console()
    with refusals_as_exits(errors, judge.address), _ctrl_c_as_exit(errors):
        check_not_read([items], [flags.out])
        judge, own = _apart(judge)
        named = named_judge(judge)
        check = make_check(flags.check, own["check"])
        queue = str(items).removeprefix(_QUEUE) if str(items).startswith(_QUEUE) else None
        if queue is None:
            file = judge_rows(items, named.rows_like, table)
        else:
            file, note = _queued(items, queue, judge, named, table)
            if note:
                errors.print(note, markup=False)
        good = checked_rows(file, errors, "item to judge")
        auditor = flags.auditor or ("human" if queue is None else "labels")
        settings = _audit_settings(flags, auditor, own["audit"])
        if plan.dry_run:
            outline = named.outline(errors)
            tell_dry_run(outline, good.amount, plan.prices, errors)
            _tell_rounds(good.number * outline.calls, settings, errors)
            return
        decisions = json.dumps([flags.check, own["check"], settings], sort_keys=True)
        settings |= {"check": check, "max_concurrency": flags.max_concurrency}
        with _session(
            judge, named.options, flags.memory, list(good), settings, decisions
        ) as session:
            _go(session, errors)
            _show(session, flags.out)


def _queued(
    path: Path, queue: str, flags: AllureFlags, named: NamedJudge, table: RowFlags
) -> tuple[RowFile, str]:
    """Return the runs of a queue that people labelled, and what is to be said of the others."""
    from langchain_judges.integrations.annotation_queue import labelled_runs
    from langchain_judges.methods.registry import load_judge

    columns = named_columns(table.column) or {}
    if more := sorted(set(columns) - {"label", "source"}):
        raise OptionError(f"of a queue, --column names label and source alone, not {more[0]!r}")
    chat = chat_model(flags.model, flags.base_url, flags.timeout, dry_run=True)
    with settings_as_flags(named.options):
        judge = load_judge("allure", chat, preset=flags.preset, **named.options)
    with langsmith_client() as client:
        key, source = columns.get("label"), columns.get("source")
        found = labelled_runs(client, queue, judge, key=key, context=source)
    note = ""
    if found.left_out:
        id, reason = found.left_out[0]
        note = f"Runs of {queue!r} left out: {len(found.left_out)}; {id}: {reason}."
    runs = Source(list(found.items)[: table.limit], False, check=check_of(*named.rows_like))
    return RowFile(path, runs), note


@contextmanager
def _session(
    judge: AllureFlags,
    options: Mapping[str, object],
    memory: Path,
    items: list[dict[str, object]],
    settings: dict[str, Any],
    decisions: str,
) -> Iterator[Session]:
    """Open the audit of some items, whose state stands beside the memory's file."""
    # Loaded here: a dry run needs nothing of it.
    from langchain_judges.methods.registry import load_judge
    from langchain_judges.runs.budget import places_of

    store = open_memory(memory)
    chat = chat_model(judge.model, judge.base_url, judge.timeout)
    with settings_as_flags(options):
        built = load_judge("allure", chat, preset=judge.preset, **options, memory=store)
    # How many are judged at once decides nothing: a slower run resumes this audit.
    settings = {**settings, "max_concurrency": settings["max_concurrency"] or places_of(built)}
    with open_audit(built, store, memory, items, settings, decisions) as session:
        yield session


def _apart(judge: AllureFlags) -> tuple[AllureFlags, dict[str, list[str]]]:
    """Return the flags without what `--set` says of the check and the audit, and that."""
    own: dict[str, list[str]] = {"check": [], "audit": []}
    rest: list[str] = []
    for each in judge.option or []:
        part, dot, value = each.partition(".")
        (own[part] if dot and part in own else rest).append(
            value if dot and part in own else each
        )
    return replace(judge, option=rest), own


def _audit_settings(flags: AuditFlags, auditor: str, own: list[str]) -> dict[str, Any]:
    """Return the settings of the audit itself.

    Raises:
        OptionError: `--set` names no option of an audit.
    """
    from langchain_judges.methods.allure.state import AuditOptions

    settings = dict(setting(each) for each in own)
    takes = AuditOptions.__annotations__.keys() & AuditOptions.model_fields.keys()
    takes -= {"check", "auditor", "dev", "labels", "max_concurrency"}
    if unknown := [name for name in settings if name not in takes]:
        nearest = did_you_mean(unknown[0], takes)
        raise OptionError(
            f"an audit has no option {unknown[0]!r}; {nearest}it takes "
            f"{', '.join(sorted(takes))}"
        )
    return {"auditor": auditor, "dev": flags.dev, **settings}


def _tell_rounds(calls: int, settings: Mapping[str, Any], errors: Console) -> None:
    """Say what the rounds after the first may ask, and the auditor if it is a model."""
    from langchain_judges.methods.allure.state import AuditOptions
    from langchain_judges.runs.decision import counted

    rounds = settings.get("max_rounds", AuditOptions.defaults()["max_rounds"])
    if rounds > 1:
        errors.print(
            f"That is the first round; a later one judges again what its examples may change, "
            f"so {rounds} rounds make at most {counted(rounds * calls, 'call')}."
        )
    if settings["dev"] is not None:
        errors.print("Beside these, examples are tried on the items held out by --dev.")
    if (auditor := settings["auditor"]) not in {"human", "labels"}:
        check_model({"name": auditor}, errors)
        text = (
            f"{auditor} is asked once about each doubted label, at most once an item a round."
        )
        errors.print(text, markup=False)


@contextmanager
def _ctrl_c_as_exit(errors: Console) -> Iterator[None]:
    # Loaded here: help needs nothing of it.
    from langchain_judges.asking.signals import stoppable

    try:
        with stoppable(SIGNALS, tell_stopping, leave_at_once):
            yield
    except KeyboardInterrupt as exc:
        errors.print("Stopped. The same command resumes where it stopped.")
        raise typer.Exit(INTERRUPTED) from exc


def make_check(name: str, settings: list[str]) -> Check:
    """Return a check by its name and options.

    Raises:
        OptionError: There is no such check or option.
    """
    from langchain_judges.methods.allure.checks import CHECKS
    from langchain_judges.methods.registry import named

    make: Callable[..., Check] = named(CHECKS, name, "check")
    values = dict(setting(each) for each in settings)
    takes = list(inspect.signature(make).parameters)
    if unknown := [option for option in values if option not in takes]:
        rule = f"it takes {', '.join(takes)}" if takes else "it takes none"
        nearest = did_you_mean(unknown[0], takes)
        raise OptionError(f"the check {name!r} has no option {unknown[0]!r}; {nearest}{rule}")
    try:
        return make(**values)
    except TypeError as exc:
        raise OptionError(f"the check {name!r}: {exc}") from exc


def _go(session: Session, errors: Console) -> None:
    """Work until the audit ends, or the person stops."""
    if session.result is not None:
        errors.print(
            "This audit is finished. Other items or settings make another one; so does "
            "another file of the memory."
        )
        return
    if session.waiting is None:
        session.work(errors)
    while (request := session.waiting) is not None:
        if not _review(session, request, errors):
            return


def _review(session: Session, request: AuditRequest, errors: Console) -> bool:
    """Have the proposals answered at the terminal; False if the person stops before."""
    draft = session.drafts.with_name(f"{session.drafts.name}-{request['round']}.jsonl")
    review = Review(request["proposals"], draft)
    console = InertConsole(highlight=False)
    desk = Desk(
        console,
        read_key,
        lambda what: console.input(f"{what}: "),
        request["labels"],
        request["modes"],
    )
    if not desk.go_through(review):
        total = len(request["proposals"])
        errors.print(
            f"Proposals without an answer: {total - len(review.answers)} of {total}. "
            "The same command resumes here."
        )
        return False
    session.work(errors, list(review.answers.values()))
    review.close()
    return True


def _show(session: Session, out: Path | None) -> None:
    from langchain_judges.report.terminal import audit_report

    result = session.result
    if result is None:
        return
    InertConsole(highlight=False).print(audit_report(result))
    if out is not None:
        values = {key: result.get(key) for key in session.audit.output_channels}
        write_text(out, inert_json(json.dumps(values, ensure_ascii=False, indent=1)))
