"""A small server for custodians: a real learner behind plain HTTP on the loopback address."""

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sottovoce as sv
from sottovoce.device.transport import Request, Response
from sottovoce.server.catalogue import Chain
from sottovoce.shared import wire
from sottovoce.shared.errors import Refused
from sottovoce.shared.signed import SignedRelease, block_to_json, key_id, message

ADDRESS = "https://example.org/sottovoce"

Hook = Callable[[str], tuple[int, dict[str, str]] | None]
"""Is told the stage, "release", "before" or "after" a batch; a status in return is the answer."""


class CustodianServer:
    """Publishes signed releases and takes batches.

    log: every report that was stored. sent: how often the bytes of each nonce came.
    hook: may answer instead of the server.
    """

    def __init__(self, experiment: sv.Experiment) -> None:
        self.learner = sv.Learner(experiment)
        self.chain = Chain(experiment.fingerprint)
        self.versions: dict[bytes, int] = {}
        self._note_release()
        self.log: dict[bytes, bytes] = {}
        self.sent: Counter[tuple[bytes, bytes]] = Counter()
        self.batches: list[int] = []
        self.releases: list[int] = []
        self.hook: Hook = lambda stage: None
        self.address = ADDRESS
        self._key = Ed25519PrivateKey.generate()
        self._lock = threading.Lock()

    @property
    def experiment(self) -> sv.Experiment:
        return self.learner.experiment

    @property
    def key(self) -> str:
        return self._key.public_key().public_bytes_raw().hex()

    def document(self) -> bytes:
        release = self.learner.release()
        text, before = wire.release_to_json(release), self.chain.before(release.version)
        key = key_id(bytes.fromhex(self.key))
        return SignedRelease(before, key, self._key.sign(message(before, text)), text).to_json()

    def _note_release(self) -> None:
        release = self.learner.release()
        if release.version > len(self.versions):
            self.chain.add(wire.release_to_json(release))
            self.versions[wire.release_id(release)] = release.version

    def transport(self, request: Request) -> Response:
        """Answer without a network."""
        path = request.url.removeprefix(ADDRESS)
        status, headers, body = self.answer(request.method, path, request.body or b"")
        return Response(status, {name.lower(): value for name, value in headers.items()}, body)

    def take(self, reports: list[bytes]) -> dict[str, Any]:
        stored, repeated, refused = 0, 0, []
        self.batches.append(len(reports))
        for index, body in enumerate(reports):
            report = wire.report_from_bytes(body)
            self.sent[report.nonce, body] += 1
            if report.nonce in self.log:
                repeated += 1
                continue
            try:
                self.learner.receive(report)
            except Refused as error:
                refused.append({"index": index, "reason": error.reason.value})
                continue
            self.log[report.nonce] = body
            self._note_release()
            stored += 1
        return {"stored": stored, "repeated": repeated, "refused": refused}

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        with self._lock:
            if method == "GET":
                at = f"/experiments/{self.experiment.fingerprint}/"
                if path.startswith(at + "chain/"):
                    hashes = self.chain.block(int(path.removeprefix(at + "chain/")))
                    return 200, {}, block_to_json(hashes)
                if path != at + "releases/current":
                    return 404, {}, b'{"error": "no such experiment"}'
                return self._instead("release") or self._release()
            if instead := self._instead("before"):
                return instead
            reports = wire.batch_from_bytes(body) if path == "/reports/batch" else [body]
            said = json.dumps(self.take(reports)).encode()
            return self._instead("after") or (200, {"Content-Type": "application/json"}, said)

    def _instead(self, stage: str) -> tuple[int, dict[str, str], bytes] | None:
        came = self.hook(stage)
        return None if came is None else (*came, b"later")

    def _release(self) -> tuple[int, dict[str, str], bytes]:
        self.releases.append(self.learner.release().version)
        return 200, {"Content-Encoding": "gzip"}, gzip.compress(self.document())


@contextmanager
def serving(experiment: sv.Experiment) -> Iterator[CustodianServer]:
    """Run a server on a free port for as long as the block lasts."""
    server = CustodianServer(experiment)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._do(b"")

        def do_POST(self) -> None:
            self._do(self.rfile.read(int(self.headers["Content-Length"])))

        def _do(self, body: bytes) -> None:
            status, headers, said = server.answer(self.command, self.path, body)
            try:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(said))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)
            except OSError:
                self.close_connection = True  # whoever asked was killed meanwhile

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.address = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
