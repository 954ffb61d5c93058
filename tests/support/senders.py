"""Clients that send real reports without pause, and remember what was acknowledged."""

import http.client
import json
import random
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from urllib.parse import urlsplit

import sottovoce as sv
from sottovoce.shared import wire
from sottovoce.shared.release import Release
from sottovoce.shared.signed import SignedRelease
from sottovoce.shared.wire import nonce_of

# How many reports each of them sends at once, at most.
SIZES = (1, 1, 20, 60)
LATER = (408, 429)


# The young need a reminder and the old a coach, the others not much: there is always more to learn.
WALKING = """
name = "walking"
arms = ["control", "reminder", "coach"]
epsilon = 8.0
horizon = 100000
release_every = 100

[[context]]
name = "age"
numeric = [18, 90]

[[context]]
name = "sleep"
numeric = [4, 10]
"""

# For people of the lab.
PAIR = """
name = "pair"
arms = ["reminder", "coach"]
epsilon = 4.0
horizon = 3000
release_every = 50

[[context]]
name = "age"
numeric = [18, 90]

[[context]]
name = "sleep"
numeric = [4, 10]
"""


def pair() -> sv.Experiment:
    return sv.Experiment.from_table(tomllib.loads(PAIR))


def walking() -> sv.Experiment:
    return sv.Experiment.from_table(tomllib.loads(WALKING))


def report_of(release: Release, rng: random.Random) -> bytes:
    """The report of one simulated person, made by a real device."""
    device = sv.Device(release)
    age = rng.uniform(18, 90)
    arm = device.choose({"age": age, "sleep": rng.uniform(4, 10)})
    share = (age - 18) / 72
    chance = {"reminder": 1 - share, "coach": share}.get(arm, 0.5)
    return wire.report_to_bytes(device.report(reward=float(rng.random() < chance)))


class Senders:
    """Several threads, each with a connection of its own, sending single reports or batches.

    Each does what a client does: after no answer, 5xx, 408 or 429 the same bytes again. Now and
    then one forgets that it was answered, and sends once more; or loses heart, and never knows.

    again: how often one forgets.
    sent: the bytes of each report that has left, by nonce. acknowledged: nonces.
    troubles: answers that no client should get.
    """

    def __init__(
        self,
        url: str,
        experiment: sv.Experiment,
        *,
        sizes: Sequence[int] = SIZES,
        again: float = 0.1,
    ) -> None:
        self.sent: dict[bytes, bytes] = {}
        self.acknowledged: set[bytes] = set()
        self.troubles: list[str] = []
        self.statuses: Counter[int] = Counter()
        self._address = urlsplit(url)
        self._experiment = experiment
        self._release = sv.Learner(experiment).release()
        self._asked = 0.0
        self._again = again
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep_on, args=(most,), daemon=True) for most in sizes
        ]

    def __enter__(self) -> "Senders":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def wait_for(self, more: int, *, patience: float = 60.0) -> None:
        """Return when so many more reports have been acknowledged."""
        goal = len(self.acknowledged) + more
        deadline = time.monotonic() + patience
        while len(self.acknowledged) < goal:
            assert not self.troubles, self.troubles[0]
            assert time.monotonic() < deadline, "the service did not come back"
            time.sleep(0.01)

    def _keep_on(self, most: int) -> None:
        rng = random.Random()
        address = self._address
        link = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        try:
            while not self._stop.is_set():
                self._refresh(link)
                reports = [report_of(self._release, rng) for _ in range(rng.randint(1, most))]
                self.sent.update((nonce_of(each), each) for each in reports)
                self._deliver(link, reports, rng, batch=most > 1)
        except Exception as error:  # a sender that dies would make the test too easy
            self.troubles.append(repr(error))
        finally:
            link.close()

    def _deliver(
        self,
        link: http.client.HTTPConnection,
        reports: Sequence[bytes],
        rng: random.Random,
        *,
        batch: bool,
    ) -> None:
        path = "/reports/batch" if batch else "/reports"
        body = wire.batch_to_bytes(reports) if batch else reports[0]
        acknowledged = False
        while not self._stop.is_set():
            answer = self._ask(link, "POST", path, body)
            if answer is None or answer[0] >= 500 or answer[0] in LATER:
                if rng.random() < 0.02:
                    return
                time.sleep(0.02)
                continue
            status, said = answer
            table = json.loads(said)
            taken = table.get("stored", 0) + table.get("repeated", 0)
            if status != 200 or table["refused"] or taken != len(reports):
                self.troubles.append(f"lost, by status {status}: {said[:200]!r}")
                return
            if acknowledged and table["stored"]:
                self.troubles.append("stored twice, or acknowledged and then lost")
            acknowledged = True
            self.acknowledged.update(map(nonce_of, reports))
            if rng.random() >= self._again:
                return

    def _refresh(self, link: http.client.HTTPConnection) -> None:
        """Follow the newest release, whoever's turn it is to ask for it."""
        if time.monotonic() - self._asked < 0.2:
            return
        self._asked = time.monotonic()
        path = f"/experiments/{self._experiment.fingerprint}/releases/current"
        answer = self._ask(link, "GET", path, None)
        if answer is None or answer[0] != 200:
            return
        release = wire.release_from_json(SignedRelease.from_json(answer[1]).text)
        running = release.experiment.state == "running"  # else nobody takes part
        if running and release.version > self._release.version:
            self._release = release

    def _ask(
        self, link: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> tuple[int, bytes] | None:
        """Return the status and the body of the answer; None if there was none."""
        try:
            link.request(method, path, body, {"Content-Type": "application/octet-stream"})
            answer = link.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException):
            link.close()
            return None
        self.statuses[answer.status] += 1
        return answer.status, said
