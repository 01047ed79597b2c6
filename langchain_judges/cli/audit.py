"""`langchain-judges audit`: find a judge's mistakes, have them audited, remember them."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from langchain_judges.cli.audit_review import Desk, Review, read_key
from langchain_judges.cli.flags import Concurrency, DryRunFlags, RowFlags, Without, unfolded
from langchain_judges.cli.judges import (
    ModelJudgeFlags,
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
    leave_at_once,
    refusals_as_exits,
    tell_stopping,
)
from langchain_judges.cli.rows import (
    check_not_read,
    checked_rows,
    judge_rows,
    tell_dry_run,
    warn_of_size,
)
from langchain_judges.errors import InputError, OptionError, OutputError, did_you_mean
from langchain_judges.rows.printable import InertConsole, inert_json

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langsmith import Client

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

    def forget_drafts(self) -> None:
        """Remove what was answered here in part, and then elsewhere or not at all."""
        for draft in self.drafts.parent.glob(f"{self.drafts.name}-*.jsonl"):
            draft.unlink(missing_ok=True)

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


_QUEUE = "langsmith:"
"""Begins the name of an annotation queue, in place of a file."""


@dataclass(frozen=True)
class ElsewhereFlags:
    """Where people review, if not here: files, or annotation queues of LangSmith."""

    export: Annotated[
        str | None,
        typer.Option(
            "--export", help="Write the proposals to a file, or to langsmith:QUEUE, and stop."
        ),
    ] = None
    answers: Annotated[
        str | None,
        typer.Option("--import", help="Read answers from such a file or langsmith:QUEUE."),
    ] = None

    def read(self, request: AuditRequest) -> list[dict[str, object]] | None:
        """Return the answers that people gave elsewhere; None if none are to be read.

        Raises:
            InputError: They cannot be read, or the file holds none.
        """
        if self.answers is None:
            return None
        if self.answers.startswith(_QUEUE):
            from langchain_judges.methods.allure.auditors import read_queue

            with langsmith_client() as client:
                queue = self.answers.removeprefix(_QUEUE)
                return read_queue(request["proposals"], queue, client)
        from langchain_judges.methods.allure.review import from_jsonl

        try:
            answers = from_jsonl(Path(self.answers).read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError) as exc:
            raise InputError(f"{self.answers} cannot be read: {exc}") from exc
        if not answers:
            raise InputError(f"{self.answers} has no answer to any of the proposals")
        return answers

    def send(self, request: AuditRequest, errors: Console) -> bool:
        """Send the proposals to where people review; False if that is here."""
        if self.export is None:
            return False
        if not self.export.startswith(_QUEUE):
            _export(request, Path(self.export), errors)
            return True
        from langchain_judges.methods.allure.auditors import send_proposals

        queue = self.export.removeprefix(_QUEUE)
        with langsmith_client() as client:
            count = send_proposals(request["proposals"], queue, client)
        errors.print(
            f"{_proposals(count)} in the queue {queue!r}. When all are answered, run the same "
            f"command with --import {self.export}.",
            markup=False,
        )
        return True


@contextmanager
def langsmith_client() -> Iterator[Client]:
    """Give a LangSmith client, whose troubles end the command in one sentence.

    Raises:
        OutputError: LangSmith cannot be reached, or refuses.
    """
    from langsmith import Client
    from langsmith.utils import LangSmithError
    from requests import RequestException

    # Its warnings would say the same again, at length and from a thread that outlives this.
    logging.getLogger("langsmith").setLevel(logging.ERROR)
    try:
        yield Client()
    except (LangSmithError, RequestException) as exc:
        reason = " ".join(str(exc).split()).partition(". ")[0][:300]
        raise OutputError(f"LangSmith refused ({type(exc).__name__}): {reason}") from exc


def _export(request: AuditRequest, path: Path, errors: Console) -> None:
    from langchain_judges.methods.allure.review import to_jsonl

    write_text(path, to_jsonl(request["proposals"], request["labels"], request["modes"]))
    count = _proposals(len(request["proposals"]))
    errors.print(
        f"{count} in {path}. Fill in `answer` on each line, then run the same command with "
        "--import.",
        markup=False,
    )


def _proposals(count: int) -> str:
    from langchain_judges.report.number import count_text

    return count_text(count, "proposal is", "proposals are")


def write_text(path: Path, text: str) -> None:
    """Write a file.

    Raises:
        InputError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as exc:
        raise InputError(f"{path} cannot be written: {exc.strerror}") from exc


@dataclass(frozen=True)
class AllureFlags(ModelJudgeFlags):
    """The judge that is audited."""

    method: str = "allure"


@dataclass(frozen=True)
class AuditFlags:
    """How an audit goes, and where it is stored."""

    memory: Annotated[Path, typer.Option(help="File of the memory; made if missing.")]
    check: Annotated[
        str,
        typer.Option(
            help="The check that finds likely mistakes; --set check.NAME=VALUE: its options."
        ),
    ] = "normalised_sequence"
    auditor: Annotated[str, typer.Option(help="human, or the name of a model that audits.")] = (
        "human"
    )
    dev: Annotated[
        float | None, typer.Option(help="Share of the items to hold out, by group.")
    ] = None
    max_rounds: Annotated[int, typer.Option(min=1, help="Most rounds.")] = 5
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the whole result, as JSON.")
    ] = None
    max_concurrency: Concurrency = None
    restart: Annotated[
        bool, typer.Option("--restart", help="Start again after this audit has finished.")
    ] = False

    @property
    def settings(self) -> dict[str, Any]:
        """What decides an audit besides its check, as `create_allure_audit` takes it."""
        names = ("auditor", "dev", "max_rounds")
        return {name: getattr(self, name) for name in names}


@unfolded
def audit(
    items: Annotated[Path, typer.Argument(help="JSONL file with input, output, expected.")],
    judge: Annotated[AllureFlags, Without("method", "spec", "model_set", "memory")],
    flags: AuditFlags,
    elsewhere: ElsewhereFlags,
    table: RowFlags,
    plan: DryRunFlags,
) -> None:
    """Audit a judge's labels, one doubtful label a screen; the same command resumes.

    Exit codes: 0 done or waiting for answers, 2 wrong use or refused, 130 Ctrl-C.
    """
    errors = error_console()
    with refusals_as_exits(errors, judge.address), _ctrl_c_as_exit(errors):
        exported = Path(elsewhere.export) if elsewhere.export else None
        check_not_read([items], [exported, flags.out])
        judge, of_check = _without_check(judge)
        named = named_judge(judge)
        check = make_check(flags.check, of_check)
        file = judge_rows(items, named.rows_like, table)
        good = checked_rows(file, table.skip_bad, errors, "item to judge")
        warn_of_size(file.longest, errors)
        if plan.dry_run:
            outline = named.outline(errors)
            tell_dry_run(outline, good.amount, plan.prices, errors)
            _tell_rounds(good.number * outline.calls, flags, errors)
            return
        decisions = json.dumps(
            [of_check, {**flags.settings, "check": flags.check}], sort_keys=True
        )
        with _session(judge, named.options, flags, check, list(good), decisions) as session:
            _go(session, errors, elsewhere, restart=flags.restart)
            _show(session, flags.out)


@contextmanager
def _session(
    judge: AllureFlags,
    options: Mapping[str, object],
    flags: AuditFlags,
    check: Check,
    items: list[dict[str, object]],
    decisions: str,
) -> Iterator[Session]:
    """Open the audit of some items, whose state stands beside the memory's file."""
    # Loaded here: a dry run needs nothing of it.
    from langchain_judges.methods.registry import load_judge
    from langchain_judges.runs.budget import places_of

    store = open_memory(flags.memory)
    chat = chat_model(judge.model, judge.base_url, judge.timeout)
    with settings_as_flags(options):
        built = load_judge("allure", chat, preset=judge.preset, **options, memory=store)
    # How many are judged at once decides nothing: a slower run resumes this audit.
    places = flags.max_concurrency or places_of(built)
    settings = {**flags.settings, "check": check, "max_concurrency": places}
    with open_audit(built, store, flags.memory, items, settings, decisions) as session:
        yield session


def _without_check(judge: AllureFlags) -> tuple[AllureFlags, list[str]]:
    """Return the flags without what `--set` says of the check, and that."""
    options = judge.option or []
    of_check = [each for each in options if each.startswith("check.")]
    rest = [each for each in options if each not in of_check]
    return replace(judge, option=rest), [each.removeprefix("check.") for each in of_check]


def _tell_rounds(calls: int, flags: AuditFlags, errors: Console) -> None:
    """Say what the rounds after the first may ask, and the auditor if it is a model."""
    rounds, auditor = flags.max_rounds, flags.auditor
    errors.print(
        f"That is the first round; a later one judges again what its examples may change, so "
        f"{rounds} rounds make at most {rounds * calls:,} calls."
    )
    if flags.dev is not None:
        errors.print("Beside these, examples are tried on the items held out by --dev.")
    if auditor != "human":
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


def _go(session: Session, errors: Console, elsewhere: ElsewhereFlags, *, restart: bool) -> None:
    """Work until the audit ends, or people are to answer later."""
    reads = elsewhere.answers is not None
    if session.result is not None and not restart:
        if reads:
            raise InputError("this audit is finished; it has no more proposals")
        errors.print("This audit is finished; --restart starts it again.")
        return
    if session.result is not None:
        session.forget_drafts()
    if session.waiting is None:
        session.work(errors)
    if reads:
        _import(session, elsewhere, errors)
    while (request := session.waiting) is not None:
        if elsewhere.send(request, errors) or not _review(session, request, errors):
            return


def _import(session: Session, elsewhere: ElsewhereFlags, errors: Console) -> None:
    if session.waiting is None:
        raise InputError("this audit has no open proposals")
    session.work(errors, elsewhere.read(session.waiting))
    problems = (session.waiting or {}).get("problems", [])
    if problems:
        raise InputError("\n".join([*problems, "Fix these answers; the others were accepted."]))


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
