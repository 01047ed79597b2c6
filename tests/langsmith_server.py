"""A LangSmith on loopback that keeps the runs which the real client sends to it."""

from __future__ import annotations

import io
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import zstandard

INFO = {
    "version": "0.16.0",
    "instance_flags": {"zstd_compression_enabled": True},
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "scale_up_qsize_trigger": 1000,
        "scale_up_nthreads_limit": 16,
        "scale_down_nempty_trigger": 4,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
    },
}


class LangSmithServer:
    """`with LangSmithServer() as server:` then read `server.runs`, by id."""

    def __init__(self) -> None:
        # Bodies are only stored while the client waits, and parsed when they are read.
        self._bodies: list[tuple[bytes, str, str]] = []
        self.runs: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> LangSmithServer:
        keep = self._bodies

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.answer(INFO)

            def do_POST(self) -> None:
                head = self.headers
                keep.append(
                    (
                        self.body(),
                        head.get("content-type", ""),
                        head.get("content-encoding", ""),
                    )
                )
                self.answer({})

            def body(self) -> bytes:
                if "chunked" not in (self.headers.get("transfer-encoding") or ""):
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            def answer(self, payload: dict[str, Any]) -> None:
                body = json.dumps(payload).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def read(self) -> LangSmithServer:
        """Parse what has come in so far."""
        while self._bodies:
            body, kind, encoding = self._bodies.pop(0)
            if encoding == "zstd":
                stream = zstandard.ZstdDecompressor().stream_reader(
                    io.BytesIO(body), read_across_frames=True
                )
                body = stream.read()
            for name, data in _parts(body, kind):
                self._keep(name.split("."), data)
        return self

    def _keep(self, name: list[str], data: bytes) -> None:
        run = self.runs.setdefault(name[1], {"id": name[1]})
        if len(name) == 2:
            run.update({k: v for k, v in json.loads(data).items() if v is not None})
        elif name[0] in {"post", "patch"}:
            run[name[2]] = json.loads(data)

    def children(self, run: dict[str, Any] | None) -> list[dict[str, Any]]:
        parent = run and run["id"]
        found = [r for r in self.runs.values() if r.get("parent_run_id") == parent]
        return sorted(found, key=lambda r: r["dotted_order"])

    def tree(self, run: dict[str, Any] | None = None, depth: int = 0) -> str:
        """Render the names of all runs, each under its parent; hidden ones left out."""
        lines = []
        for child in self.children(run):
            if "langsmith:hidden" not in (child.get("tags") or []):
                lines.append("  " * depth + child["name"])
            lines.append(self.tree(child, depth + 1))
        return "\n".join(filter(None, lines))


def _parts(body: bytes, kind: str) -> list[tuple[str, bytes]]:
    found = re.search(r'boundary="?([^";]+)', kind)
    if not found:
        return []
    boundary = b"--" + found[1].encode()
    parts = []
    for chunk in body.split(boundary + b"\r\n")[1:]:
        head, _, data = chunk.split(b"\r\n" + boundary + b"--")[0].partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        assert name
        parts.append((name[1].decode(), data.removesuffix(b"\r\n")))
    return parts
