"""An audit that resumes where it stopped, and where its proposals are reviewed."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from langchain_judges.errors import InputError, OutputError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langsmith import Client

    from langchain_judges.memory.recall import Memory
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
    folder: Path,
    items: list[dict[str, object]],
    settings: dict[str, Any],
    decisions: str,
) -> Iterator[Session]:
    """Open the audit of some items by a judge, which the folder of the memory stores.

    Args:
        judge: The judge.
        memory: Its memory.
        folder: Where the state is stored, in `audit.sqlite`.
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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise OutputError(f"{folder} cannot be a folder: {exc.strerror}") from exc
    with SqliteSaver.from_conn_string(str(folder / "audit.sqlite")) as saver:
        loop = create_allure_audit(judge, memory, **settings, checkpointer=saver)
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        yield Session(loop, items, config, folder / f"review-{thread}")


@dataclass(frozen=True)
class ElsewhereFlags:
    """Where people review, if not here: files, or annotation queues of LangSmith."""

    export: Annotated[
        Path | None, typer.Option("--export", help="Write the proposals here and stop.")
    ] = None
    answers: Annotated[
        Path | None, typer.Option("--import", help="Read answers from an exported file.")
    ] = None
    send_to: Annotated[
        str | None,
        typer.Option("--send-to", help="Put the proposals into this LangSmith queue; stop."),
    ] = None
    read_from: Annotated[
        str | None, typer.Option("--read-from", help="Read answers from this LangSmith queue.")
    ] = None

    def read(self, request: AuditRequest) -> list[dict[str, object]] | None:
        """Return the answers that people gave elsewhere; None if none are to be read.

        Raises:
            InputError: They cannot be read.
        """
        if self.answers is not None:
            from langchain_judges.methods.allure.review import from_jsonl

            try:
                return from_jsonl(self.answers.read_text(encoding="utf-8-sig"))
            except (OSError, UnicodeDecodeError) as exc:
                raise InputError(f"{self.answers} cannot be read: {exc}") from exc
        if self.read_from is not None:
            from langchain_judges.methods.allure.auditors import read_queue

            with langsmith_client() as client:
                return read_queue(request["proposals"], self.read_from, client)
        return None

    def send(self, request: AuditRequest, errors: Console) -> bool:
        """Send the proposals to where people review; False if that is here."""
        if self.export is not None:
            _export(request, self.export, errors)
        if self.send_to is not None:
            from langchain_judges.methods.allure.auditors import send_proposals

            with langsmith_client() as client:
                count = send_proposals(request["proposals"], self.send_to, client)
            errors.print(
                f"{count} proposals are in the queue {self.send_to!r}. When they are answered, "
                "run the same command with --read-from.",
                markup=False,
            )
        return self.export is not None or self.send_to is not None


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
    errors.print(
        f"{len(request['proposals'])} proposals are in {path}. Fill in `answer` on each line, "
        "then run the same command with --import.",
        markup=False,
    )


def write_text(path: Path, text: str) -> None:
    """Write a file.

    Raises:
        InputError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as exc:
        raise InputError(f"{path} cannot be written: {exc.strerror}") from exc
