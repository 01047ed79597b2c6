"""`langchain-judges audit`: find a judge's mistakes, have them audited, remember them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.audit_review import Desk, Review
from langchain_judges.cli.audit_session import ElsewhereFlags, Session, open_audit, write_text
from langchain_judges.cli.chat_models import chat_model, check_model
from langchain_judges.cli.estimates import tell_dry_run, warn_of_size
from langchain_judges.cli.flag_groups import DryRunFlags, ModelJudgeFlags, RowFlags
from langchain_judges.cli.flags import Concurrency
from langchain_judges.cli.keyboard import read_key
from langchain_judges.cli.messages import INTERRUPTED, error_console, refusals_as_exits
from langchain_judges.cli.named_judge import named_judge, open_memory
from langchain_judges.cli.row_files import check_not_read, checked_rows, judge_rows
from langchain_judges.cli.settings import setting, settings_as_flags
from langchain_judges.cli.unfolding import Without, unfolded
from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.rows.printable import InertConsole, inert_json

if TYPE_CHECKING:
    from langchain_judges.methods.allure.checks import Check
    from langchain_judges.methods.allure.review import AuditRequest


@dataclass(frozen=True)
class AllureFlags(ModelJudgeFlags):
    """The judge that is audited."""

    method: str = "allure"


@dataclass(frozen=True)
class AuditFlags:
    """How an audit goes, and where it is stored."""

    memory: Annotated[Path, typer.Option(help="Folder of the memory; made if missing.")]
    check: Annotated[str, typer.Option(help="The check that finds likely mistakes.")] = (
        "normalised_sequence"
    )
    check_option: Annotated[
        list[str] | None,
        typer.Option("--check-set", metavar="NAME=VALUE", help="An option of the check."),
    ] = None
    auditor: Annotated[str, typer.Option(help="human, or the name of a model that audits.")] = (
        "human"
    )
    dev: Annotated[
        float | None, typer.Option(help="Share of the items to hold out, by group.")
    ] = None
    max_rounds: Annotated[int, typer.Option(min=1, help="Most rounds.")] = 5
    patience: Annotated[
        int, typer.Option(min=1, help="Stop after this many rounds without a gain.")
    ] = 2
    truth: Annotated[str, typer.Option(help="Field with an item's true label.")] = "label"
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
        names = ("auditor", "dev", "max_rounds", "patience", "truth")
        return {name: getattr(self, name) for name in names}


@unfolded
def audit(
    items: Annotated[Path, typer.Argument(help="JSONL file with input, output, expected.")],
    judge: Annotated[AllureFlags, Without("method", "spec", "model_set", "memory")],
    flags: AuditFlags,
    elsewhere: ElsewhereFlags,
    table: Annotated[RowFlags, Without("column")],
    plan: DryRunFlags,
) -> None:
    """Audit a judge's labels, one doubtful label a screen; the same command resumes.

    Exit codes: 0 done or waiting for answers, 2 wrong use or refused, 130 Ctrl-C.
    """
    errors = error_console()
    with refusals_as_exits(errors, judge.address), _ctrl_c_as_exit(errors):
        check_not_read([items], [elsewhere.export, flags.out])
        named = named_judge(judge)
        check = make_check(flags.check, flags.check_option or [])
        file = judge_rows(items, named.rows_like, table)
        good = checked_rows(file, table.skip_bad, errors, "item to judge")
        warn_of_size(file.longest, errors)
        if plan.dry_run:
            outline = named.outline(errors)
            tell_dry_run(outline, good.amount, plan.prices, errors)
            _tell_rounds(good.number * outline.calls, flags, errors)
            return
        with _session(judge, named.options, flags, check, list(good)) as session:
            _go(session, errors, elsewhere, restart=flags.restart)
            _show(session, flags.out)


@contextmanager
def _session(
    judge: AllureFlags,
    options: Mapping[str, object],
    flags: AuditFlags,
    check: Check,
    items: list[dict[str, object]],
) -> Iterator[Session]:
    """Open the audit of some items, which the folder of the memory stores."""
    # Loaded here: a dry run needs nothing of it.
    from langchain_judges.methods.registry import load_judge
    from langchain_judges.runs.in_flight import places_of

    store = open_memory(flags.memory)
    chat = chat_model(judge.model, judge.base_url, judge.timeout)
    with settings_as_flags(options):
        built = load_judge("allure", chat, preset=judge.preset, **options, memory=store)
    decisions = json.dumps(
        [flags.check_option, {**flags.settings, "check": flags.check}], sort_keys=True
    )
    # How many are judged at once decides nothing: a slower run resumes this audit.
    places = flags.max_concurrency or places_of(built)
    settings = {**flags.settings, "check": check, "max_concurrency": places}
    with open_audit(built, store, flags.memory, items, settings, decisions) as session:
        yield session


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
    try:
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
    values = dict(setting(each, "--check-set") for each in settings)
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
    reads = elsewhere.answers is not None or elsewhere.read_from is not None
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
    answers = elsewhere.read(session.waiting)
    if not answers and elsewhere.answers is not None:
        raise InputError(f"{elsewhere.answers} has no answer to any of the proposals")
    session.work(errors, answers)
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
        unanswered = len(request["proposals"]) - len(review.answers)
        errors.print(f"{unanswered} of {len(request['proposals'])} proposals are unanswered. "
                     "The same command resumes here.")  # fmt: skip
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
