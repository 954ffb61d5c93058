"""An administrator who amends an experiment without pause, and remembers what was answered."""

import json
import random
import threading
import time
from itertools import chain, cycle
from types import TracebackType
from typing import Any

import sottovoce as sv
from sottovoce.device.transport import Request, send
from sottovoce.shared.errors import TransportError

# A learner remembers every arm, and is slower with each: there are no more than a few.
ALL = ("extend horizon", "pause", "add arm", "resume", "retire arm")
WITHOUT_ARMS = ("extend horizon", "pause", "resume")
LATER = (429, 500, 503, 507)


class Amender:
    """One thread. After no answer it sends the same again, as many times as that takes.

    acknowledged: the documents that were acknowledged, by their number.
    troubles: answers that no administrator should get.
    """

    def __init__(self, url: str, experiment: sv.Experiment, *, token: str) -> None:
        self.acknowledged: dict[int, dict[str, Any]] = {}
        self.troubles: list[str] = []
        self.repeated = 0
        self._url = f"{url}/experiments/{experiment.fingerprint}/amendments"
        self._token = token
        self._horizon = experiment.horizon
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_on, daemon=True)

    def __enter__(self) -> "Amender":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(60)

    def _keep_on(self) -> None:
        try:
            for what in chain(3 * ALL, cycle(WITHOUT_ARMS)):
                self._amend(self._change(what))
                time.sleep(random.uniform(0, 0.1))
                if self._stop.is_set():
                    return
        except Exception as error:  # one that dies would make the test too easy
            self.troubles.append(repr(error))

    def _change(self, kind: str) -> dict[str, Any]:
        count = len(self.acknowledged)
        about: dict[str, Any] = {}
        if kind == "extend horizon":
            self._horizon += 1000
            about = {"horizon": self._horizon}
        elif kind == "add arm":
            about = {"arm": f"arm {count}", "cap": 0.2}
        elif kind == "retire arm":  # the one that was added two before
            about = {"arm": f"arm {count - 2}"}
        return {"kind": kind, "by": "Ada", "after": count, **about}

    def _amend(self, change: dict[str, Any]) -> None:
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._token}"}
        request = Request("POST", self._url, headers, json.dumps(change).encode())
        while not self._stop.is_set():
            try:
                answer = send(request, timeout=30)
            except TransportError:
                time.sleep(0.02)
                continue
            if answer.status in LATER:
                time.sleep(0.02)
                continue
            table = json.loads(answer.body)
            if answer.status not in (200, 201) or table["number"] != change["after"] + 1:
                self.troubles.append(f"{change}: {answer.status}, {table}")
                self._stop.set()
                return
            self.repeated += answer.status == 200
            self.acknowledged[table["number"]] = table["amendment"]
            return
