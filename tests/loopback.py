"""A server on loopback whose answers a test writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Says nothing of its requests, and sends a body at once behind its head."""

    disable_nagle_algorithm = True

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


def send(handler: BaseHTTPRequestHandler, data: Any) -> None:
    content = json.dumps(data).encode()
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
