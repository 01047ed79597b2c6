"""What the protocol scripts share: options, a cache of replies, a figure, and how they end."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation

from langchain_judges.asking.models import resolve_model
from langchain_judges.cli.flags import SECONDS, BaseUrl, Concurrency, Model
from langchain_judges.cli.messages import MISUSED, end_stopped, error_console
from langchain_judges.errors import JudgeError, needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BaseUrl", "Concurrency", "Data", "Limit", "Model", "Out", "Seed"]

Data = Annotated[
    Path | None, typer.Option(help="Folder in which each public set has one of its name.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results; resumable.")]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Take the first of each set; default the paper's.")
]
Seed = Annotated[int, typer.Option(help="Of everything that is drawn.")]


def in_flight(model: str, concurrency: int | None) -> int:
    """Return how many model calls may be in flight."""
    # More calls would only push each other out of a local model's prompt cache.
    return concurrency or (4 if model.partition(":")[0] == "local" else 16)


def inside(data: Path | None, *names: str) -> Path:
    """Return what a folder of public sets has under a name, or say that it is missing."""
    if data is None:
        wanted = "/".join(names)
        raise typer.BadParameter(f"name the folder that has {wanted}", param_hint="--data")
    path = data.joinpath(*names)
    if not path.exists():
        raise typer.BadParameter(f"there is no {path}", param_hint="--data")
    return path


def named(listed: str, allowed_names: Collection[str], option: str) -> list[str]:
    """Return the names in a list with commas, or say which of them is unknown."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if unknown := [name for name in names if name not in allowed_names]:
        allowed = ", ".join(allowed_names)
        raise typer.BadParameter(
            f"{', '.join(unknown)}: not among {allowed}", param_hint=option
        )
    return names


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file, and cut off one that a killed run left unfinished."""
    text = path.read_bytes() if path.exists() else b""
    end = text.rfind(b"\n") + 1
    if end < len(text):
        os.truncate(path, end)
    return text[:end].decode().splitlines()


class Replies(BaseCache):
    """A model's replies, shared by all arms of a study and by all runs of it.

    Arms that ask the same share what was replied, so their comparison is paired. A reply
    from here has the usage that it had when it came: each arm costs what it would alone.

    Args:
        path: The file, one JSON object for each reply.
    """

    def __init__(self, path: Path) -> None:
        """Read what earlier runs wrote."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._lock = Lock()
        rows = map(json.loads, whole_lines(path))
        self._messages: dict[str, list[dict[str, Any]]] = {
            row["request"]: row["messages"] for row in rows
        }

    def __len__(self) -> int:
        """Return how many different requests were answered."""
        return len(self._messages)

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        """Return the reply to a request, or None."""
        messages = self._messages.get(_request(prompt, llm_string))
        if messages is None:
            return None
        return [ChatGeneration(message=message) for message in messages_from_dict(messages)]

    async def alookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        """Return the reply to a request, or None."""
        return self.lookup(prompt, llm_string)

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        """Write a reply down."""
        request = _request(prompt, llm_string)
        messages = [message_to_dict(each.message) for each in return_val]
        line = json.dumps({"request": request, "messages": messages}, default=str)
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            self._messages[request] = json.loads(line)["messages"]

    async def aupdate(self, prompt: str, llm_string: str, return_val: Any) -> None:
        """Write a reply down."""
        self.update(prompt, llm_string, return_val)

    def clear(self, **_: Any) -> None:
        """Forget all replies."""
        with self._lock:
            self._path.unlink(missing_ok=True)
            self._messages.clear()

    def sentence(self) -> str:
        """Return how often the model was asked in truth."""
        return (
            f"The model was sent {len(self):,} different requests for all arms together, in "
            "this run and those that it resumes; the tables count what each arm would take "
            "alone."
        )


def _request(prompt: str, llm_string: str) -> str:
    return hashlib.sha256(f"{llm_string}\n{prompt}".encode()).hexdigest()


_Chat = TypeVar("_Chat", bound=BaseChatModel)


def shared_model(
    name: str, base_url: str | None, out: Path, timeout: float = SECONDS
) -> tuple[BaseChatModel, Replies]:
    """Return a model, and the replies in a study's folder from which it answers first."""
    replies = Replies(out / "replies.jsonl")
    return sharing(resolve_model(name, base_url=base_url, timeout=timeout), replies), replies


def sharing(model: _Chat, replies: Replies) -> _Chat:
    """Return a model that answers an equal request from the replies that came before."""
    return model.model_copy(update={"cache": replies})


def canvas(width: float = 8.0, height: float = 4.6, **grid: Any) -> tuple[Figure, Any]:
    """Return an empty figure and its axes."""
    with needs("trust", "A plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**grid)


def program(*commands: Callable[..., Any]) -> typer.Typer:
    """Return a command line whose errors, and its end by Ctrl-C, are one sentence."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    for command in commands:
        app.command()(_reporting(command))
    return app


def _reporting(command: Callable[..., Any]) -> Callable[..., None]:
    @wraps(command)
    def reporting(**options: Any) -> None:
        try:
            command(**options)
        except (JudgeError, FileNotFoundError) as exc:
            error_console().print(str(exc), style="red", markup=False)
            raise typer.Exit(MISUSED) from exc
        except KeyboardInterrupt:
            end_stopped(error_console())

    return reporting
