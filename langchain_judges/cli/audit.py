"""`langchain-judges audit`: find a judge's mistakes, have them audited, remember them."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from langchain_judges.cli.audit_review import Desk, Review, read_key
from langchain_judges.cli.flags import PlanFlags, RowFlags, unfolded
from langchain_judges.cli.judges import (
    JudgeFlags,
    NamedJudge,
    chat_model,
    check_model,
    named_judge,
    open_memory,
    setting,
    tell_plan,
)
from langchain_judges.cli.messages import (
    ctrl_c_as_exit,
    error_console,
    langsmith_client,
    refusals_as_exits,
    say,
)
from langchain_judges.cli.rows import (
    RowFile,
    check_file,
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

    def work(self, answers: Mapping[str, Mapping[str, object]] | None = None) -> None:
        """Work until people are asked or the audit ends, and show the progress."""
        from langgraph.types import Command

        start: Any = Command(resume=answers) if answers is not None else None
        if start is None and not self.audit.get_state(self.config).next:
            start = {"items": self.items}
        items = calls = 0
        with error_console().status("judging") as status:
            for update in self.audit.stream(start, self.config, stream_mode="updates"):
                for verdicts in _verdicts(update):
                    items += len(verdicts)
                    calls += sum(each["usage"]["calls"] for each in verdicts.values())
                    status.update(f"judged {items:,} items, {calls:,} calls")


def _verdicts(update: dict[str, Any]) -> Iterator[VerdictsById]:
    for node in ("evaluate", "try"):
        yield from (update.get(node) or {}).values()


@contextmanager
def open_session(
    named: NamedJudge,
    path: Path,
    items: list[dict[str, object]],
    settings: dict[str, Any],
    check: Check,
    most: int | None,
) -> Iterator[Session]:
    """Open the audit of some items by a judge, whose state stands beside its memory's file.

    Args:
        named: The judge.
        path: The memory's file; the state is in `<path>.audit`.
        items: The items.
        settings: What decides; other settings make another audit.
        check: Finds likely mistakes.
        most: The most calls in flight, which decide nothing: a slower run resumes this audit.
    """
    # Loaded here: a dry run needs nothing of it.
    from langgraph.checkpoint.sqlite import SqliteSaver

    from langchain_judges.methods.allure.audit import create_allure_audit
    from langchain_judges.methods.describe import metadata_of
    from langchain_judges.runs.budget import places_of

    memory = open_memory(path)
    judge = replace(named, memory=memory).build()
    marks = {name: value for name, value in metadata_of(judge).items() if name != "calls"}
    data = json.dumps([items, marks, settings], sort_keys=True, default=str)
    thread = hashlib.sha256(data.encode()).hexdigest()[:16]
    own = {name: value for name, value in settings.items() if name not in _OF_CHECK}
    own |= {"check": check, "max_concurrency": most or places_of(judge)}
    with SqliteSaver.from_conn_string(f"{path}.audit") as saver:
        loop = create_allure_audit(judge, memory, **own, checkpointer=saver)
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        yield Session(loop, items, config, path.with_name(f"{path.name}.review-{thread}"))


_OF_CHECK = ("check", "check_settings")


@dataclass(frozen=True)
class AuditedFlags(JudgeFlags):
    """The judge that is audited, and its memory."""

    method: str = field(default="allure", init=False)
    spec: Path | None = field(default=None, init=False)
    memory: Annotated[Path, typer.Option(help="File of the memory; made if missing.")] = field(
        kw_only=True
    )


@dataclass(frozen=True)
class AuditFlags(PlanFlags):
    """How an audit goes, and where its result is stored."""

    check: Annotated[
        str,
        typer.Option(
            help="The check that finds likely mistakes: answer_or_label, exact, normalised, "
            "normalised_sequence, set, numeric, pattern or annotated."
        ),
    ] = "answer_or_label"
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


_QUEUE = "langsmith:"
"""Begins the name of an annotation queue, in place of a file."""


@unfolded
def audit(
    items: Annotated[
        Path,
        typer.Argument(
            help="Table of items with input, output, and expected or a label by people; or "
            "langsmith:QUEUE of labelled runs."
        ),
    ],
    judge: AuditedFlags,
    flags: AuditFlags,
    table: RowFlags,
) -> None:
    """Audit a judge's labels, one doubtful label a screen; the same command resumes.

    Exit codes: 0 done or stopped at the terminal, 2 wrong use or refused, 130 Ctrl-C.
    """
    is_queue = str(items).startswith(_QUEUE)
    with refusals_as_exits(), ctrl_c_as_exit():
        if flags.prices and not flags.dry_run:
            raise OptionError("--prices of an audit is for --dry-run")
        check_not_read([items], [flags.out])
        if flags.out:
            check_file("--out", flags.out)
        options = judge.option or []
        rest = [each for each in options if not each.startswith(("check.", "audit."))]
        named = named_judge(replace(judge, option=rest, memory=None))  # type: ignore[arg-type]  # it may be missing yet
        own = _settings_of("check", options, inspect.signature(_maker(flags.check)).parameters)
        check = _made(flags.check, own)
        settings = {
            **{"check": flags.check, "check_settings": own, "dev": flags.dev},
            "auditor": flags.auditor or ("labels" if is_queue else "human"),
            **_settings_of("audit", options, _settable()),
        }
        if is_queue:
            file = _queued(items, judge, named, table)
        else:
            file = judge_rows(items, named.rows_like, table)
        good = checked_rows(file, "item to judge")
        plan = named.outline()
        tell_plan(plan, good.number, good.size, flags)
        if flags.dry_run:
            _tell_rounds(good.number * plan.calls, settings)
            return
        most = flags.max_concurrency
        with open_session(named, judge.memory, list(good), settings, check, most) as session:
            _go(session)
            _show(session, flags.out)


def _queued(path: Path, flags: JudgeFlags, named: NamedJudge, table: RowFlags) -> RowFile:
    """Return the runs of a queue that people labelled."""
    from langchain_judges.integrations.annotation_queue import labelled_runs
    from langchain_judges.methods.registry import load_judge

    columns = named_columns(table.column, ("label", "source")) or {}
    chat = chat_model(str(flags.model), flags.base_url, flags.timeout, dry_run=True)
    judge = load_judge({**named.spec, "model": chat})
    queue = str(path).removeprefix(_QUEUE)
    with langsmith_client() as client:
        key, source = columns.get("label"), columns.get("source")
        found = labelled_runs(client, queue, judge, key=key, context=source)
    if found.left_out:
        id, reason = found.left_out[0]
        say(f"Runs of {queue!r} left out: {len(found.left_out)}; {id}: {reason}.")
    runs = Source(list(found.items)[: table.limit], False, check=check_of(*named.rows_like))
    return RowFile(path, runs)


def _settings_of(part: str, options: Sequence[str], takes: Iterable[str]) -> dict[str, Any]:
    """Return what `--set PART.NAME=VALUE` gave.

    Raises:
        OptionError: The part has no such option.
    """
    names = sorted(takes)
    own = dict(
        setting(each.removeprefix(f"{part}."))
        for each in options
        if each.startswith(f"{part}.")
    )
    for name in own:
        if name not in names:
            raise OptionError(
                f"--set {part}.{name} is no option of the {part}; {did_you_mean(name, names)}"
                f"it takes {', '.join(names) or 'none'}"
            )
    return own


def _settable() -> Iterable[str]:
    """Return the options of an audit that no flag sets."""
    from langchain_judges.methods.allure.state import AuditOptions

    names = AuditOptions.__annotations__.keys() & AuditOptions.model_fields.keys()
    return names - {"check", "auditor", "dev", "labels", "max_concurrency"}


def _maker(name: str) -> Callable[..., Check]:
    from langchain_judges.methods.allure.checks import CHECKS
    from langchain_judges.methods.registry import named

    return cast("Callable[..., Check]", named(CHECKS, name, "check"))


def _made(name: str, settings: Mapping[str, Any]) -> Check:
    """Return a check by its name and options.

    Raises:
        OptionError: An option is missing.
    """
    try:
        return _maker(name)(**settings)
    except TypeError as exc:
        raise OptionError(f"the check {name!r}: {exc}") from exc


def _tell_rounds(calls: int, settings: Mapping[str, Any]) -> None:
    """Say what the rounds after the first may ask, and the auditor if it is a model."""
    from langchain_judges.methods.allure.state import AuditOptions
    from langchain_judges.runs.summary import counted

    rounds = settings.get("max_rounds", AuditOptions.defaults()["max_rounds"])
    if rounds > 1:
        say(
            f"That is the first round; a later one judges again what its examples may change, "
            f"so {rounds} rounds make at most {counted(rounds * calls, 'call')}."
        )
    if settings["dev"] is not None:
        say("Beside these, examples are tried on the items held out by --dev.")
    if (auditor := settings["auditor"]) not in {"human", "labels"}:
        check_model({"name": auditor})
        say(f"{auditor} is asked once about each doubted label, at most once an item a round.")


def _go(session: Session) -> None:
    """Work until the audit ends, or the person stops."""
    if session.result is not None:
        say(
            "This audit is finished. Other items or settings make another one; so does "
            "another file of the memory."
        )
        return
    if session.waiting is None:
        session.work()
    while (request := session.waiting) is not None:
        if not _review(session, request):
            return


def _review(session: Session, request: AuditRequest) -> bool:
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
        say(
            f"Proposals without an answer: {total - len(review.answers)} of {total}. "
            "The same command resumes here."
        )
        return False
    session.work(review.answers)
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
        text = inert_json(json.dumps(values, ensure_ascii=False, indent=1))
        out.write_text(text, encoding="utf-8", errors="replace")
