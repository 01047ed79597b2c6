"""The page on this machine: one address with a token, one writer, no outside content."""

from __future__ import annotations

import json
import re
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from langchain_judges.errors import InputError, OutputError
from langchain_judges.lazy import packaged
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.rows.texts import texts_read
from langchain_judges.viewer import desks, items, render

_HOST = "127.0.0.1"
# Names by which it may be reached.
_LOOPBACK = (_HOST, "localhost", "::1")
_HEADERS: Mapping[str, str] = packaged(__package__, "words.yaml")["headers"]
_PORT = re.compile(r":\d+\Z")
# Bytes of a request.
_LARGEST = 65_536


@dataclass
class Page:
    """Rows on a page, and the desk at which people answer, if there is one.

    Attributes:
        found: The rows, verdicts and reports.
        desk: Where answers go; None: view only.
        name: The person's name, until another is typed.
    """

    found: items.Collection
    desk: desks.Desk | None = None
    name: str = ""

    def listed(self, place: int) -> dict[str, Any]:
        """Entry of a row in the list."""
        row, people = self.found.rows[place], self.desk.people(place) if self.desk else ()
        named = str(place + 1) if row.get("id") in (None, "") else render.visible(row["id"])
        return {"id": named[:80], "tags": self.found.tags(place, people)}

    def config(self) -> dict[str, Any]:
        """Configuration of the page's script."""
        places = range(len(self.found.rows))
        return {
            "rows": [self.listed(place) for place in places],
            "order": self.desk.order() if self.desk else list(places),
            "desk": self.desk is not None,
            "name": self.name,
            **self.state(self.name),
        }

    def state(self, by: str) -> dict[str, Any]:
        """Rows that a person has finished or begun, and the progress of all."""
        if (desk := self.desk) is None:
            return {"done": [], "begun": {}, "told": [], "next": ""}
        told, command = desk.standing()
        counts = {
            place: (len(desk.answered(place, by)), len(desk.questions(place)))
            for place in desk.touched()
        }
        done = [place for place, (own, all_) in counts.items() if own == all_]
        begun = {place: f"{n} of {m}" for place, (n, m) in counts.items() if 0 < n < m}
        return {"done": done, "begun": begun, "told": told, "next": command}

    def row(self, place: int, by: str, *, marked: bool = False, opened: bool = False) -> Any:
        """A row as the page shows it; verdicts and people's answers only after an answer."""
        desk = self.desk
        is_done = desk is not None and desk.is_done(place, by)
        blind = desk is not None
        text = render.texts(self.found.rows[place], blind=blind, marked=marked)
        shown = {"place": place, "text": text, **self.listed(place), "verdict": None}
        people = desk.people(place) if desk else ()
        if desk is None or is_done or opened:
            shown["verdict"] = render.verdicts(self.found, place, people, blind=blind)
        if desk is not None:
            shown |= {"questions": desk.questions(place), "said": desk.answered(place, by)}
            shown |= {
                "note": desk.noted(place, by),
                "mode": desk.mode(place),
                "isDone": is_done,
                "isTold": desk.is_told(place, by),
            }
            shown |= {"differs": desk.difference(place) if is_done else ""}
        return shown

    @cached_property
    def words(self) -> list[str]:
        """Searchable text of each row: its name and its texts, and no verdict."""
        return [f"{r.get('id')} {' '.join(texts_read(r))}".casefold() for r in self.found.rows]

    @property
    def kinds(self) -> set[str]:
        """The kinds of its rows."""
        return set(map(kind_of_row, self.found.rows))


def export(page: Page) -> str:
    """One HTML file with all rows, to share; it loads nothing and takes no labels."""
    rows = [
        (render.texts(row, blind=False), render.verdicts(page.found, place))
        for place, row in enumerate(page.found.rows)
    ]
    page = Page(page.found)
    return render.rows_page({**page.config(), "whole": True}, rows, page=page)


def _data(content: object) -> Response:
    """JSON in ASCII: what somebody typed may hold half a character."""
    return Response(json.dumps(content), media_type="application/json")


def create_app(page: Page, token: str) -> ASGIApp:
    """The page as an app.

    Args:
        page: What it shows.
        token: Must be in each address; the port differs behind a tunnel.
    """

    async def guard(request: Request, answer: RequestResponseEndpoint) -> Response:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        given = request.query_params.get("t", "").encode()
        allowed = (
            _PORT.sub("", host).strip("[]") in _LOOPBACK
            and origin in (None, f"http://{host}")
            and secrets.compare_digest(given, token.encode())
        )
        refused = PlainTextResponse("Open the address that the command printed.", 403)
        response = await answer(request) if allowed else refused
        response.headers.update(_HEADERS)
        return response

    async def shell(request: Request) -> Response:
        config = {**page.config(), "token": token}
        return HTMLResponse(render.rows_page(config, page=page, token=token))

    async def row(request: Request) -> Response:
        place, query = request.path_params["place"], request.query_params
        if place >= len(page.found.rows):
            return PlainTextResponse("there is no such row", 404)
        by, marked = query.get("by", ""), "marked" in query
        return _data(await run_in_threadpool(page.row, place, by, marked=marked))

    async def state(request: Request) -> Response:
        return _data(page.state(request.query_params.get("by", "")))

    async def find(request: Request) -> Response:
        wanted = request.query_params.get("q", "").casefold()
        words = await run_in_threadpool(lambda: page.words)
        return _data([n for n, text in enumerate(words) if wanted in text])

    routes: list[BaseRoute] = [
        Route("/", shell),
        Route("/row/{place:int}", row),
        Route("/state", state),
        Route("/find", find),
    ]
    if page.desk is not None:
        routes.append(Route("/answer", _answering(page, page.desk), methods=["POST"]))
    routes.append(Mount("/", StaticFiles(packages=[(__package__, "templates")])))
    return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, guard)])


def _answering(page: Page, desk: desks.Desk) -> Callable[[Request], Any]:
    """Handler of answers: one at a time, each saved before the page is updated."""

    async def answer(request: Request) -> Response:
        try:
            sent = await _sent(request)
            by, place = str(sent.get("by", "")), sent.get("place")
            if not isinstance(place, int) or not 0 <= place < len(page.found.rows):
                raise InputError("there is no such row")
            # In the event loop: no two answers are written at a time.
            place = _take(desk, place, by, sent)
        except InputError as exc:
            return PlainTextResponse(f"not saved: {exc}", 400)
        except OutputError as exc:
            return PlainTextResponse(f"not saved: {exc}", 507)
        row = page.row(place, by, opened=sent["do"] == "open")
        return _data({"row": row, "state": page.state(by)})

    return answer


def _take(desk: desks.Desk, place: int, by: str, sent: Mapping[str, Any]) -> int:
    """Do what an answer says; return the place of its row.

    Raises:
        InputError: It asks for no known action, or its page shows an older answer.
    """
    name, key, mode, text = (str(sent.get(n) or "") for n in ("name", "key", "mode", "text"))
    do, now = sent.get("do"), desk.answered(place, by).get(name)
    if do == "note":
        now = desk.noted(place, by)
    if do in ("say", "note") and (sent.get("was") or "") != (now or ""):
        raise InputError("this was answered in another window; it is shown now")
    match do:
        case "say":
            if sent.get("opened"):
                desk.open(place, by)
            desk.say(place, by, name, key, mode)
        case "note":
            desk.note(place, by, text)
        case "open":
            desk.open(place, by)
        case "undo":
            return desk.undo(by)
        case _:
            raise InputError("an answer does one of say, note, open, undo")
    return place


async def _sent(request: Request) -> dict[str, Any]:
    """The JSON object that a request holds.

    Raises:
        InputError: It is too long, or not a JSON object.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise InputError(f"an answer has at most {_LARGEST:,} bytes")
    try:
        return dict(json.loads(body))
    except (ValueError, TypeError, RecursionError) as exc:
        raise InputError("an answer is a JSON object") from exc


class Server:
    """The page at a local address.

    Args:
        page: What it shows.
        port: The port; 0 for a free one.

    Attributes:
        address: Where to open it; the token is in it.

    Raises:
        OutputError: The port is taken.
    """

    def __init__(self, page: Page, port: int = 0) -> None:
        """Bind the port, without answering yet."""
        token = secrets.token_urlsafe(24)
        try:
            self._socket = socket.create_server((_HOST, port))
        except OSError as exc:
            raise OutputError(f"{_HOST}:{port} cannot be listened at: {exc.strerror}") from exc
        app = create_app(page, token)
        # By a `log_config` all handlers of logs that the process has would be closed.
        config = uvicorn.Config(
            app, log_config=None, log_level="warning", access_log=False, lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self.address = f"http://{_HOST}:{self._socket.getsockname()[1]}/?t={token}"

    def run(self) -> None:
        """Answer until Ctrl-C."""
        # What verdicts show is loaded meanwhile.
        load = partial(import_module, "langchain_judges.methods.registry")
        threading.Thread(target=load, daemon=True).start()
        self._server.run(sockets=[self._socket])

    def start(self) -> Server:
        """Answer in a daemon thread."""
        threading.Thread(target=self.run, name="page", daemon=True).start()
        return self

    def close(self) -> None:
        """Stop answering."""
        self._server.should_exit = True
