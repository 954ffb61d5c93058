"""Phones over some weeks: they restart, go offline, answer late or never, and their people return.

A ``Phone`` is one person with an app. It lives through a day at a time, by a clock of its own. What
the app keeps lies in files, so that another process can go on after a kill. ``Fleet`` runs each
phone in a process of its own, which it kills now and then.

What a person brings is told by ``chances``; rewards are minutes, some beyond the bounds.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import sottovoce as sv
from sottovoce.device.transport import Request, Response, send
from sottovoce.shared.amendment import ADD_ARM, EXTEND_HORIZON, RETIRE_ARM, STOP

DAY = 86_400.0
BEGIN = 1_800_000_000.0
BUDGET, PER = 24.0, "14 days"
LATEST = 6  # days until an outcome is known
WINDOW = 7
KEPT = "app.jsonl"

EXPERIMENT = sv.Experiment(
    name="thirty days",
    arms=["control", "reminder"],
    context=[sv.Numeric("age", 18, 90), sv.Numeric("sleep", 4, 10)],
    epsilon=4.0,
    horizon=3000,
    release_every=50,
    reward=[0, 60],
    reward_window=f"{WINDOW} days",
)

AMENDMENTS: dict[int, tuple[str, dict[str, Any]]] = {
    8: (ADD_ARM, {"arm": "coach"}),
    15: (RETIRE_ARM, {"arm": "reminder"}),
    20: (EXTEND_HORIZON, {"horizon": 8000}),
    30: (STOP, {}),
}
"""What is amended, before the first visit of which day."""

LAST_DAY = 30 + WINDOW + 1


def chances(person: dict[str, float]) -> dict[str, float]:
    """How likely each arm works for somebody."""
    return {
        "control": 0.3,
        "reminder": 0.7 if person["sleep"] < 7 else 0.2,
        "coach": 0.8 if person["age"] < 54 else 0.15,
    }


def arms_on(day: int) -> set[str]:
    """The arms that there are on a day."""
    arms = {"control", "reminder"}
    for since, (kind, about) in AMENDMENTS.items():
        if since <= day and kind == ADD_ARM:
            arms.add(about["arm"])
        if since <= day and kind == RETIRE_ARM:
            arms.remove(about["arm"])
    return arms


@dataclass(frozen=True)
class World:
    """Where phones report to. transport: of a server in memory; None for the network."""

    address: str
    experiment: str
    key: str
    transport: Callable[[Request], Response] | None = None


class Phone:
    """One person, the app, and what lies on the phone."""

    def __init__(self, world: World, folder: Path, number: int) -> None:
        rng = random.Random(number)
        self.person = {"age": rng.uniform(18, 90), "sleep": rng.uniform(4, 10)}
        self._world, self._folder, self._number = world, folder, number
        self._now = BEGIN
        self._is_online = True
        folder.mkdir(exist_ok=True)
        self.client = self._start()

    def live(self, day: int) -> None:
        """Live through a day: outcomes that are known by now, then perhaps a visit or two."""
        rng = random.Random(f"{self._number} {day}")
        # Offline for some days together, but for the last ones.
        stretch = random.Random(f"{self._number} {day // 3}").random()
        self._is_online = day == 0 or day >= 30 or stretch > 0.15
        self._now = BEGIN + day * DAY
        if rng.random() < 0.2:
            self.client = self._start()
        self._now = self._moment(rng.uniform(0.1, 0.4), day)
        self._tell_outcomes()
        for _ in range((rng.random() < 0.6) + (rng.random() < 0.15)):
            if day < 34:
                self._visit(day, rng)
        self._now = self._moment(0.95, day)
        self.client.send()

    def figures(self) -> dict[str, Any]:
        """What became of it."""
        ledger = sv.Ledger.read(self._folder / "ledger")
        spent = [(each.moment, each.epsilon) for each in ledger.entries()]
        visits = [each for each in self._kept() if "arm" in each]
        left = [self.client.open, self.client.waiting]
        refused = sum(self.client.refused.values())
        return {"visits": visits, "spent": spent, "left": left, "refused": refused}

    def _visit(self, day: int, rng: random.Random) -> None:
        decision = self.client.choose(self.person)
        release, retired = self.client.release, []
        if release is not None:  # whoever was never online has the default arm
            now = release.experiment
            retired = [now.arms[arm] for arm in now.retired]
        self._keep(arm=decision.arm, day=day, asked=decision.asked, retired=retired)
        if decision.asked and rng.random() > 0.1:
            works = rng.random() < chances(self.person)[decision.arm]
            due = self._now + rng.uniform(0, LATEST - 0.5) * DAY
            self._keep(id=decision.id, due=due, reward=75 if works else -5)

    def _tell_outcomes(self) -> None:
        told = {each["told"] for each in self._kept() if "told" in each}
        for each in self._kept():
            if "id" in each and each["id"] not in told and each["due"] <= self._now:
                with suppress(sv.DeviceError):  # it was told before a kill
                    self.client.report(each["id"], reward=each["reward"])
                self._keep(told=each["id"])

    def _start(self) -> sv.Client:
        folder, now = self._folder, lambda: self._now
        ledger = sv.Ledger(folder / "ledger", budget=BUDGET, per=PER, now=now)
        return self._client(folder / "outbox", ledger)

    def _client(self, outbox: Path | None, ledger: Any) -> sv.Client:
        coin = random.Random(self._number).random
        return sv.Client(
            self._world.address,
            experiment=self._world.experiment,
            keys=[self._world.key],
            most_epsilon=4.0,
            outbox=outbox,
            ledger=ledger,
            default="control",
            refresh_every=0.5 * DAY,
            transport=self._send,
            clock=lambda: self._now,
            now=lambda: self._now,
            sleep=lambda seconds: None,
            jitter=coin,
        )

    def _send(self, request: Request) -> Response:
        if not self._is_online:
            raise sv.TransportError("the server must be reachable; the phone is offline")
        return (self._world.transport or send)(request)

    def _moment(self, share: float, day: int) -> float:
        return max(self._now, BEGIN + (day + share) * DAY)

    def _kept(self) -> list[dict[str, Any]]:
        path = self._folder / KEPT
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def _keep(self, **line: Any) -> None:
        with (self._folder / KEPT).open("a") as file:
            # Begun with a new line: a kill may have cut off the one before.
            file.write("\n" + json.dumps(line))
            file.flush()
            os.fsync(file.fileno())


class Memory:
    """A ledger that is nowhere."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._spent: list[tuple[float, float]] = []

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        since = self._now() - 14 * DAY
        if sum(cost for moment, cost in self._spent if moment > since) + epsilon > BUDGET:
            raise sv.BudgetSpent("the budget of 14 days must not be exceeded")
        self._spent.append((self._now(), epsilon))


class SimulatedPhone(Phone):
    """The same person, in memory alone: an app that starts again is as it was."""

    def __init__(self, world: World, folder: Path, number: int) -> None:
        self._lines: list[dict[str, Any]] = []
        self._one: sv.Client | None = None
        super().__init__(world, folder, number)

    def figures(self) -> dict[str, Any]:
        return {"visits": [each for each in self._lines if "arm" in each]}

    def _start(self) -> sv.Client:
        self._one = self._one or self._client(None, Memory(lambda: self._now))
        return self._one

    def _kept(self) -> list[dict[str, Any]]:
        return self._lines

    def _keep(self, **line: Any) -> None:
        self._lines.append(line)


# --- each in a process of its own -----------------------------------------------------------------


def _serve(world: World, folder: Path, number: int, pipe: Connection) -> None:
    phone = Phone(world, folder, number)
    while (order := pipe.recv()) != "end":
        if order == "figures":
            pipe.send(phone.figures())
        else:
            phone.live(order)
            pipe.send("done")


class Fleet:
    """Phones, each in a process of its own, forked from this one: begin it in a small process."""

    def __init__(self, world: World, folder: Path, phones: int) -> None:
        self._world, self._folder = world, folder
        self._fork = multiprocessing.get_context("fork")
        self._processes: list[Any] = [None] * phones
        self._pipes: list[Any] = [None] * phones
        self.kills = 0
        for number in range(phones):
            self._begin(number)

    def live(self, day: int, *, killed: float, at_once: int = 8) -> None:
        """Let all live through a day; kill that share of them in the middle of it."""
        rng = random.Random(day)
        doomed = {n for n in range(len(self._pipes)) if rng.random() < killed}

        def one(number: int) -> None:
            self._pipes[number].send(day)
            if number in doomed and not self._pipes[number].poll(random.uniform(0, 0.1)):
                os.kill(self._processes[number].pid, signal.SIGKILL)
                self._processes[number].join()
                self.kills += 1
                self._begin(number)
                self._pipes[number].send(day)
            assert self._pipes[number].recv() == "done"

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(one, range(len(self._pipes))))

    def figures(self) -> Iterator[dict[str, Any]]:
        for pipe in self._pipes:
            pipe.send("figures")
            yield pipe.recv()

    def end(self) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send("end")
            process.join()

    def _begin(self, number: int) -> None:
        ours, theirs = self._fork.Pipe()
        folder = self._folder / str(number)
        arguments = (self._world, folder, number, theirs)
        process = self._fork.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        theirs.close()
        self._processes[number], self._pipes[number] = process, ours


def regret_of(figures: Sequence[dict[str, Any]]) -> float:
    """What people lost against the best arm of their day, in outcomes, until the stop."""
    total = 0.0
    for number, each in enumerate(figures):
        rng = random.Random(number)
        means = chances({"age": rng.uniform(18, 90), "sleep": rng.uniform(4, 10)})
        for visit in each["visits"]:
            if visit["day"] < 30:
                best = max(means[arm] for arm in arms_on(visit["day"]))
                total += best - means[visit["arm"]]
    return total


def main() -> None:
    """A fleet that is told what to do by lines of JSON: ["live", day, killed], ["figures"]."""
    address, experiment, key, folder, phones = sys.argv[1:]
    fleet = Fleet(World(address, experiment, key), Path(folder), int(phones))
    for line in sys.stdin:
        order = json.loads(line)
        if order[0] == "live":
            begun = time.monotonic()
            fleet.live(order[1], killed=order[2])
            print(json.dumps({"seconds": time.monotonic() - begun}), flush=True)
        else:
            print(json.dumps({"kills": fleet.kills, "phones": [*fleet.figures()]}), flush=True)
    fleet.end()


if __name__ == "__main__":
    main()
