"""A server of OpenAI's batch protocol on loopback, whose jobs end when a test lets them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from langchain_judges.testing import ServerReply, reply


class Handler(BaseHTTPRequestHandler):
    """Says nothing of its requests."""

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def listening(handler: type[Handler]) -> Iterator[ThreadingHTTPServer]:
    """Serve requests on loopback in a thread."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class BatchServer:
    """Answers the requests of a job by a function, or by statuses that a test scripts.

    `answer` gets the body of a request and returns the text of the reply, or a status for one
    that fails. `ends` gets the number of a job, from 0, and returns the status it ends with;
    of an expired job the first half is answered. While `hold` is not set, no job ends.
    """

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], str | int],
        ends: Callable[[int], str] = lambda _: "completed",
    ) -> None:
        self.answer = answer
        self.ends = ends
        self.hold = threading.Event()
        self.hold.set()
        self.refuse: int | None = None
        """A status with which everything is refused."""
        self.drop_made = 0
        """So many jobs are made without an answer."""
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()

    @property
    def requests(self) -> list[int]:
        """How many requests each job has."""
        return [
            len(job["requests"] if "requests" in job else self.lines(job["input_file_id"]))
            for job in self.jobs.values()
        ]

    def lines(self, file: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[file].splitlines()]

    def __enter__(self) -> BatchServer:
        owner = self

        class Batches(Handler):
            def do_GET(self) -> None:
                owner.get(self, self.path)

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                owner.post(self, self.path, content)

        self._listening = listening(Batches)
        self.address = f"http://127.0.0.1:{self._listening.__enter__().server_port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.__exit__(None, None, None)

    def post(self, handler: BaseHTTPRequestHandler, path: str, content: bytes) -> None:
        if self.refuse:
            send(handler, {"error": {"message": "refused"}}, self.refuse)
        elif path == "/v1/files":
            kind = handler.headers["content-type"]
            head = f"content-type: {kind}\r\n\r\n".encode()
            parts: Any = BytesParser().parsebytes(head + content).get_payload()
            name = f"file-{len(self.files)}"
            self.files[name] = next(
                part.get_payload(decode=True)
                for part in parts
                if part.get_param("name", header="content-disposition") == "file"
            )
            send(handler, {"id": name})
        elif path == "/v1/batches":
            with self.lock:
                name = f"batch_{len(self.jobs)}"
                job = json.loads(content)
                self.jobs[name] = {**job, "id": name, "number": len(self.jobs)}
            if self.drop_made:
                self.drop_made -= 1
                handler.close_connection = True
                return
            send(handler, {"id": name, "status": "validating"})
        elif path == "/v1/messages/batches":
            name = f"msgbatch_{len(self.jobs)}"
            self.jobs[name] = {"id": name, "requests": json.loads(content)["requests"]}
            send(handler, self.message_batch(name))
        else:
            send(handler, {"error": {"message": "no live calls here"}}, 400)

    def message_batch(self, name: str) -> dict[str, Any]:
        """Return a job as Anthropic's protocol shows it."""
        ended = self.hold.is_set()
        size = len(self.jobs[name]["requests"])
        return {
            "id": name,
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {"processing": 0 if ended else size, "succeeded": size * ended},
            "results_url": f"{self.address}/messages/batches/{name}/results" if ended else None,
        }

    def message_results(self, name: str) -> bytes:
        lines = []
        for request in self.jobs[name]["requests"]:
            message = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": self.answer(request["params"])}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 10, "output_tokens": 2},
            }
            result = {"type": "succeeded", "message": message}
            lines.append({"custom_id": request["custom_id"], "result": result})
        return b"\n".join(json.dumps(line).encode() for line in lines)

    def get(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        if path.startswith("/v1/messages/batches/"):
            name = path.split("/")[4]
            if path.endswith("/results"):
                send_bytes(handler, self.message_results(name))
            else:
                send(handler, self.message_batch(name))
            return
        name = path.split("/")[3].partition("?")[0] if path.count("/") > 2 else ""
        if path.startswith("/v1/batches") and not name:
            send(
                handler,
                {"data": [{"status": "validating", **job} for job in self.jobs.values()]},
            )
        elif path.startswith("/v1/batches/"):
            send(handler, self.state(self.jobs[name]))
        else:
            send_bytes(handler, self.files[name])

    def state(self, job: dict[str, Any]) -> dict[str, Any]:
        if not self.hold.is_set():
            return {"id": job["id"], "status": "in_progress"}
        if "status" not in job:
            job["status"] = self.ends(job["number"])
            lines = self.lines(job["input_file_id"])
            if job["status"] == "expired":
                lines = lines[: len(lines) // 2]
            out = f"file-{len(self.files)}"
            done = (json.dumps(self.done(line), ensure_ascii=False) for line in lines)
            self.files[out] = "\n".join(done).encode()
            job["output_file_id"] = out
        return job

    def done(self, line: dict[str, Any]) -> dict[str, Any]:
        answer = self.answer(line["body"])
        if isinstance(answer, int):
            response = ServerReply(answer, {"error": {"message": "it failed"}})
        else:
            response = reply(answer)
        body = {"status_code": response.status, "body": response.payload}
        return {"custom_id": line["custom_id"], "response": body, "error": None}


def send(handler: BaseHTTPRequestHandler, data: Any, status: int = 200) -> None:
    send_bytes(handler, json.dumps(data).encode(), status)


def send_bytes(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
