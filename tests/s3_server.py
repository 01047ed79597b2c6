"""A server of Amazon's S3 protocol on loopback, with one bucket that is kept in memory."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"
_SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class S3Server:
    """Keeps objects by their keys; as S3 it knows no folders and appends to nothing."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        """Of each upload that is not completed, its parts by number."""
        self.lock = threading.Lock()

    def __enter__(self) -> S3Server:
        owner = self

        class Handler(_Handler):
            server_of_objects = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def list(self, prefix: str, delimiter: str) -> str:
        """Return the keys under a prefix, those beyond a delimiter as one."""
        entries: dict[str, str] = {}
        for key, content in sorted(self.objects.items()):
            if not key.startswith(prefix):
                continue
            head, cut, _ = key[len(prefix) :].partition(delimiter or "\0")
            if cut:
                name = f"<Prefix>{escape(prefix + head + cut)}</Prefix>"
                entries[head + cut] = f"<CommonPrefixes>{name}</CommonPrefixes>"
            else:
                size = f"<Size>{len(content)}</Size><ETag>e</ETag>"
                date = "<LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                entries[key] = f"<Contents><Key>{escape(key)}</Key>{date}{size}</Contents>"
        count = f"<KeyCount>{len(entries)}</KeyCount><IsTruncated>false</IsTruncated>"
        name = f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix>"
        body = name + count + "".join(entries.values())
        return f"<ListBucketResult {_SPACE}>{body}</ListBucketResult>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_objects: S3Server

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self) -> None:
        """Answer a request, unless it is about another bucket."""
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        values = parse_qs(parts.query, keep_blank_values=True)
        query = {name: value for name, (value, *_) in values.items()}
        content = self._content()
        if bucket != BUCKET:
            self._send(404, "<Error><Code>NoSuchBucket</Code></Error>")
        elif self.command == "PUT":
            self._write(key, query, content)
        elif self.command == "POST":
            self._upload(key, query)
        elif self.command == "DELETE":
            self.server_of_objects.objects.pop(key, None)
            self._send(204)
        else:
            self._read(key, query)

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = answer

    def _content(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            raw = b""
            while size := int(self.rfile.readline(), 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        signed = "aws-chunked" in self.headers.get("content-encoding", "")
        return _joined(raw) if signed else raw

    def _read(self, key: str, query: dict[str, str]) -> None:
        store = self.server_of_objects
        if not key:
            self._send(200, store.list(query.get("prefix", ""), query.get("delimiter", "")))
        elif key not in store.objects:
            self._send(404, "<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._send_object(store.objects[key])

    def _send_object(self, content: bytes) -> None:
        if wanted := self.headers.get("range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            self._send(206, content[int(first) : int(last) + 1])
        else:
            self._send(200, content)

    def _write(self, key: str, query: dict[str, str], content: bytes) -> None:
        store = self.server_of_objects
        with store.lock:
            if upload := query.get("uploadId"):
                store.uploads[upload][int(query["partNumber"])] = content
            else:
                store.objects[key] = content
        self._send(200)

    def _upload(self, key: str, query: dict[str, str]) -> None:
        store = self.server_of_objects
        with store.lock:
            if "uploads" in query:
                upload = f"upload-{len(store.uploads)}"
                store.uploads[upload] = {}
                kind, more = "InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>"
            else:
                parts = store.uploads[query["uploadId"]]
                store.objects[key] = b"".join(parts[number] for number in sorted(parts))
                kind, more = "CompleteMultipartUploadResult", "<ETag>e</ETag>"
        names = f"<Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
        self._send(200, f"<{kind} {_SPACE}>{names}{more}</{kind}>")

    def _send(self, status: int, content: str | bytes = b"") -> None:
        data = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        self.send_header("etag", '"e"')
        self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _joined(raw: bytes) -> bytes:
    """Return the content of a body in the chunks that S3's clients sign one by one."""
    content = b""
    while raw:
        head, _, raw = raw.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if not size:
            break
        content, raw = content + raw[:size], raw[size + 2 :]
    return content
