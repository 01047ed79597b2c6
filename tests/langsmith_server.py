"""A LangSmith on loopback: keeps the runs, datasets and feedback that the real client sends."""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INFO = {
    "version": "0.18.0",
    "instance_flags": {"zstd_compression_enabled": False},
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "scale_up_qsize_trigger": 1000,
        "scale_up_nthreads_limit": 16,
        "scale_down_nempty_trigger": 4,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
    },
}
Route = tuple[str, str, Callable[[re.Match[str], dict[str, list[str]], Any], Any]]


def now() -> str:
    return dt.datetime.now(dt.UTC).isoformat()


class LangSmithServer:
    """`with LangSmithServer() as server:` then read `server.runs`, by id, and `.feedback`.

    Args:
        status: Answer everything after `/info` with this status.
        hang: Whether no answer comes until `recover()`.
    """

    def __init__(self, *, status: int = 200, hang: bool = False) -> None:
        self.info = INFO
        self.status, self.hang = status, hang
        # Bodies are only stored while the client waits, and parsed when they are read.
        self._bodies: list[tuple[str, bytes, str]] = []
        self.received = 0
        """Bytes of traces and feedback that came, as they were sent."""
        self.requests: list[tuple[str, str]] = []
        """Method and path of every request."""
        self.runs: dict[str, dict[str, Any]] = {}
        self.feedback: list[dict[str, Any]] = []
        self.sessions: dict[str, dict[str, Any]] = {}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.examples: dict[str, dict[str, Any]] = {}
        self.queues: dict[str, dict[str, Any]] = {}
        self.queued: list[tuple[str, str]] = []
        """Queue and run of every run that was put into an annotation queue."""
        self.busy = 0
        """Number of the next requests that are answered by 429."""
        self.page = 100
        """Number of runs that come at once."""
        self.configs: dict[str, Any] = {}
        """Drawing of feedback, by its key."""
        self.attached: dict[str, str] = {}
        """Texts by the name of the file, which each example has among its attachments."""
        self.evaluators: list[Any] = []
        self.rules: list[Any] = []
        """Rules that attach evaluators to projects."""
        self.tenant = str(uuid.uuid4())
        self._lock = threading.RLock()
        self._released = threading.Event()

    def __enter__(self) -> LangSmithServer:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A body behind its head would wait 40 ms until the client has confirmed the head.
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def handle_any(self) -> None:
                kind = self.headers.get("content-type") or ""
                fake.requests.append((self.command, self.path.partition("?")[0]))
                self.answer(*fake._answer(self.command, self.path, self.body(), kind))

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

            def body(self) -> bytes:
                return self.rfile.read(int(self.headers.get("content-length") or 0))

            def answer(self, payload: Any, status: int = 200) -> None:
                body = json.dumps(payload).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def recover(self) -> None:
        """Answer everything well from now on."""
        self.status, self.hang = 200, False
        self._released.set()

    def __exit__(self, *_: object) -> None:
        self.recover()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, method: str, address: str, body: bytes, kind: str) -> tuple[Any, int]:
        path, _, query = address.partition("?")
        if self.hang:
            self._released.wait()
        if path.endswith("/info"):
            return self.info, 200
        if self.status >= 400:
            return {"detail": "no"}, self.status
        if self.busy:
            self.busy -= 1
            return {"detail": "slow down"}, 429
        is_query = path.endswith(("/query", "/rules")) or "/annotation-queues" in path
        if "/runs" in path and method != "GET" and not is_query:
            self.received += len(body)
            self._bodies.append((path, body, kind))
            return {}, 202
        payload = json.loads(body) if body else None
        with self._lock:
            try:
                return self._route(method, path, query, payload), 200
            except FileExistsError as exc:
                return {"detail": str(exc)}, 400

    def _route(self, method: str, path: str, query: str, payload: Any) -> Any:
        parameters = urllib.parse.parse_qs(query)
        path = path.removeprefix("/api/v1")
        for verb, pattern, handle in self._routes():
            if verb == method and (match := re.fullmatch(pattern, path)):
                return handle(match, parameters, payload)
        return {}

    def _routes(self) -> list[Route]:
        one = "/([^/]+)"
        return [
            ("POST", "/sessions", self._new_session),
            ("PATCH", "/sessions" + one, self._patch_session),
            ("GET", "/sessions" + one, lambda m, q, b: self.sessions[m[1]]),
            ("GET", "/sessions", lambda m, q, b: _page(self.sessions, q)),
            ("POST", "/datasets", self._new_dataset),
            ("POST", "/datasets/comparative", self._new_comparison),
            ("GET", "/datasets", lambda m, q, b: _page(self.datasets, q)),
            ("GET", "/datasets" + one, lambda m, q, b: self.datasets[m[1]]),
            ("POST", "/examples", lambda m, q, b: self._new_examples([b])[0]),
            ("POST", "/examples/bulk", lambda m, q, b: self._new_examples(b)),
            ("GET", "/examples", self._list_examples),
            ("GET", "/attached" + one, lambda m, q, b: self.attached[m[1]]),
            ("GET", "/examples" + one, lambda m, q, b: self.examples[m[1]]),
            ("POST", "/api/v2/runs/query", self._query_runs),
            ("POST", "/api/v2/threads/query", self._query_threads),
            ("GET", f"/api/v2/threads{one}/traces", self._traces_of_thread),
            ("POST", "/runs/query", self._load_runs),
            ("POST", "/platform/evaluators", self._new_evaluator),
            ("POST", "/feedback-configs", self._new_feedback_config),
            ("POST", "/feedback", self._new_feedback),
            ("GET", "/feedback", self._list_feedback),
            ("POST", "/annotation-queues", self._new_queue),
            ("GET", "/annotation-queues", lambda m, q, b: _page(self.queues, q)),
            ("POST", f"/platform/annotation-queues{one}/items", self._queue_runs),
            ("GET", f"/platform/annotation-queues{one}/items", self._runs_in_queue),
            ("POST", "/runs/rules", self._new_rule),
            ("GET", "/feedback-configs", self._list_feedback_configs),
            ("PATCH", "/feedback-configs", self._patch_feedback_config),
        ]

    def _new_session(self, _: Any, __: Any, payload: Any) -> Any:
        defaults = {"id": str(uuid.uuid4()), "tenant_id": self.tenant, "start_time": now()}
        defaults |= {"reference_dataset_id": None}
        session = {**defaults, **{k: v for k, v in payload.items() if v is not None}}
        return self.sessions.setdefault(session["id"], session)

    def _patch_session(self, result: re.Match[str], _: Any, payload: Any) -> Any:
        session = self.sessions[result[1]]
        session.update({k: v for k, v in payload.items() if v is not None})
        return session

    def _new_dataset(self, _: Any, __: Any, payload: Any) -> Any:
        counts = {"example_count": 0, "session_count": 0, "tenant_id": self.tenant}
        dataset = {**payload, **counts, "created_at": now(), "modified_at": now()}
        dataset["id"] = payload.get("id") or str(uuid.uuid4())
        return self.datasets.setdefault(dataset["id"], dataset)

    def _new_examples(self, payload: list[Any]) -> list[Any]:
        times = {"created_at": now(), "modified_at": now()}
        rows = [{**each, "id": each.get("id") or str(uuid.uuid4()), **times} for each in payload]
        self.examples |= {row["id"]: row for row in rows}
        return rows

    def _list_examples(self, _: Any, parameters: dict[str, list[str]], __: Any) -> Any:
        ids, sets = parameters.get("id"), parameters.get("dataset")
        about = {"mime_type": "text/plain"}
        files = {
            f"attachment.{name}": {**about, "presigned_url": f"{self.url}/attached/{name}"}
            for name in self.attached
        }
        is_asked = "attachment_urls" in (parameters.get("select") or ())
        asked = {"attachment_urls": files} if is_asked else {}
        return [
            {**example, **asked}
            for example in _page(self.examples, {**parameters, "name": []})
            if (not ids or example["id"] in ids) and (not sets or example["dataset_id"] in sets)
        ]

    def _found(self, sessions: Sequence[str], ids: Sequence[str], is_root: Any) -> list[Any]:
        self.read()
        names = {s["name"]: s["id"] for s in self.sessions.values()}
        runs = []
        for each in list(self.runs.values()):
            session = each.get("session_id") or names.get(each.get("session_name"))
            is_child = is_root and each.get("parent_run_id")
            if not is_child and session in sessions and (not ids or each["id"] in ids):
                runs.append({**each, "session_id": session, "app_path": "/x"})
        return runs

    def _load_runs(self, _: Any, __: Any, payload: Any) -> Any:
        """Answer what `evaluate` asks of an experiment that exists."""
        found = self._found(payload.get("session") or [], payload.get("id") or [], True)
        runs = [{**each, "status": "success"} for each in found]
        return {"runs": runs, "cursors": {"next": None}}

    def _query_runs(self, _: Any, __: Any, payload: Any) -> Any:
        """Answer page by page, as `client.runs.query` asks."""
        ids = payload.get("ids") or []
        runs = self._since(payload, payload["project_ids"], ids, payload.get("is_root"))
        runs = [run for run in runs if _passes(run, payload.get("filter") or "")]
        runs = [_selected(run, payload.get("selects") or ["ID"]) for run in runs]
        start = int(payload.get("cursor") or 0)
        page = runs[start : start + self.page]
        more = start + self.page < len(runs)
        return {"items": page, "next_cursor": str(start + self.page) if more else None}

    def _since(self, payload: Any, *which: Any) -> list[Any]:
        """The runs since a query's start, in the words of the API's second version."""
        since = dt.datetime.fromisoformat(payload["min_start_time"])
        runs = [(run, dt.datetime.fromisoformat(run["start_time"])) for run in self._found(*which)]
        utc = [(run, at if at.tzinfo else at.replace(tzinfo=dt.UTC)) for run, at in runs]
        return [run for run, at in utc if at >= since]

    def _query_threads(self, _: Any, __: Any, payload: Any) -> Any:
        runs = self._since(payload, [payload["project_id"]], [], True)
        names = dict.fromkeys(_metadata(run).get("thread_id") for run in runs)
        return {"items": [{"thread_id": name} for name in names if name], "next_cursor": None}

    def _traces_of_thread(self, result: re.Match[str], query: Any, _: Any) -> Any:
        runs = self._found(query["project_id"], [], True)
        traces = [run for run in runs if _metadata(run).get("thread_id") == result[1]]
        items = [_selected(run, query["selects"]) for run in traces[::-1]]
        return {"items": items, "next_cursor": None}

    def _new_evaluator(self, _: Any, __: Any, payload: Any) -> Any:
        self.evaluators.append(payload)
        return {"evaluator": {"id": str(uuid.uuid4()), **payload}}

    def _new_feedback_config(self, _: Any, __: Any, payload: Any) -> Any:
        key, config = payload["feedback_key"], payload["feedback_config"]
        if self.configs.setdefault(key, config) != config:
            raise FileExistsError("Feedback config already exists")
        return {**payload, "tenant_id": self.tenant, "modified_at": now()}

    def _new_comparison(self, _: Any, __: Any, payload: Any) -> Any:
        about = {"experiments_info": [{"id": i} for i in payload["experiment_ids"]]}
        return {**payload, **about, "tenant_id": self.tenant, "modified_at": now()}

    def _new_queue(self, _: Any, __: Any, payload: Any) -> Any:
        queue = {"id": str(uuid.uuid4()), "tenant_id": self.tenant, **payload}
        return self.queues.setdefault(queue["id"], queue)

    def _queue_runs(self, result: re.Match[str], _: Any, payload: Any) -> Any:
        name = self.queues[result[1]]["name"]
        self.queued += [(name, each["run_id"]) for each in payload["items"]]
        return {"items": payload["items"]}

    def _runs_in_queue(self, result: re.Match[str], parameters: Any, _: Any) -> Any:
        """Answer with all items as to be reviewed, without their runs, as LangSmith does."""
        name, asked = self.queues[result[1]]["name"], parameters["status"]
        runs = [run for queue, run in self.queued if queue == name]
        found = self._found([*self.sessions], runs, False) if runs else []
        items = [
            {"run_id": run["id"], "project_id": run["session_id"], "item_type": "RUN"}
            | {"start_time": run["start_time"]}
            for run in found
        ]
        return {"items": items if asked == ["needs_my_review"] else [], "next_cursor": None}

    def _new_rule(self, _: Any, __: Any, payload: Any) -> Any:
        self.rules.append(payload)
        return {"id": str(uuid.uuid4()), **payload}

    def _list_feedback_configs(self, _: Any, parameters: Any, __: Any) -> Any:
        about = {"tenant_id": self.tenant, "modified_at": now()}
        return [
            {"feedback_key": key, "feedback_config": self.configs[key], **about}
            for key in parameters["key"]
            if key in self.configs
        ]

    def _patch_feedback_config(self, _: Any, __: Any, payload: Any) -> Any:
        key = payload["feedback_key"]
        self.configs[key]["categories"] += payload["add_categories"]
        about = {"tenant_id": self.tenant, "modified_at": now()}
        return {"feedback_key": key, "feedback_config": self.configs[key], **about}

    def _new_feedback(self, _: Any, __: Any, payload: Any) -> Any:
        # What has an id replaces what came under that id.
        self.feedback = [f for f in self.feedback if f.get("id") != payload.get("id")]
        self.feedback.append(payload)
        return payload

    def _list_feedback(self, _: Any, parameters: dict[str, list[str]], __: Any) -> Any:
        self.read()
        start = int(parameters.get("offset", ["0"])[0])
        return [
            {"created_at": now(), "modified_at": now(), "trace_id": f["run_id"], **f}
            for f in self.feedback
            if (not parameters.get("run") or f.get("run_id") in parameters["run"])
            and (not parameters.get("key") or f.get("key") in parameters["key"])
        ][start:]

    def read(self) -> LangSmithServer:
        """Parse what has come in so far."""
        with self._lock:
            while self._bodies:
                path, body, kind = self._bodies.pop(0)
                if path.endswith("/runs"):  # one that is no part of a trace
                    run = json.loads(body)
                    alone = {"trace_id": run["id"], "dotted_order": run["id"]}
                    self._keep(["post", run["id"]], json.dumps(alone | run).encode())
                for name, data in _parts(body, kind):
                    self._keep(name.split("."), data)
        return self

    def _keep(self, name: list[str], data: bytes) -> None:
        if name[0] == "feedback":
            self.feedback.append(json.loads(data))
            return
        run = self.runs.setdefault(name[1], {"id": name[1]})
        if len(name) == 2:
            said = {k: v for k, v in json.loads(data).items() if v is not None}
        elif name[0] in {"post", "patch"}:
            said = {name[2]: json.loads(data)}
        else:
            return
        # The client sends from several threads: how a run began may come behind how it ended.
        run.update({k: v for k, v in said.items() if name[0] == "patch" or k not in run})
        self._project_of(run)

    def _project_of(self, run: dict[str, Any]) -> None:
        """Make the project that a run is traced to, if there is none."""
        name = run.get("session_name")
        if name and name not in {each["name"] for each in self.sessions.values()}:
            self._new_session(None, None, {"name": name})

    def children(self, run: dict[str, Any] | None) -> list[dict[str, Any]]:
        parent = run and run["id"]
        runs = [r for r in self.runs.values() if r.get("parent_run_id") == parent]
        return sorted(runs, key=lambda r: r["dotted_order"])


def _metadata(run: dict[str, Any]) -> dict[str, Any]:
    return (run.get("extra") or {}).get("metadata") or {}


def _passes(run: dict[str, Any], filter: str) -> bool:
    """Whether a run passes the conditions of a filter on its trace and on its type."""
    traces, kinds = re.search(r"in\(trace_id, (\[.*?\])\)", filter), _KIND.findall(filter)
    is_of = not traces or str(run["trace_id"]) in json.loads(traces[1])
    is_error = "neq(error, null)" in filter and bool(run.get("error"))
    return is_of and (not kinds or run["run_type"] in kinds or is_error)


_KIND = re.compile(r'eq\(run_type, "(\w+)"\)')


def _selected(run: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The selected fields of a run in the words of the second version of the API."""
    own = {**run, "run_type": run["run_type"].upper(), "project_id": run["session_id"]}
    own["metadata"] = _metadata(run)
    return {name: own[name] for name in map(str.lower, names) if name in own}


def _page(items: dict[str, dict[str, Any]], parameters: dict[str, list[str]]) -> list[Any]:
    names = parameters.get("name")
    page = [each for each in items.values() if not names or each["name"] in names]
    start = int(parameters.get("offset", ["0"])[0])
    return page[start : start + int(parameters.get("limit", ["1000"])[0])]


def _parts(body: bytes, kind: str) -> list[tuple[str, bytes]]:
    match = re.search(r'boundary="?([^";]+)', kind)
    if not match:
        return []
    boundary = b"--" + match[1].encode()
    parts = []
    for chunk in body.split(boundary + b"\r\n")[1:]:
        head, _, data = chunk.split(b"\r\n" + boundary + b"--")[0].partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        assert name
        parts.append((name[1].decode(), data.removesuffix(b"\r\n")))
    return parts
