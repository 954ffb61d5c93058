"""What every method must do: behind HTTP and in the lab, without a line of code there."""

import random
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from contracts.methods import PLACES, Make, device_of
from factories import Purse
from sottovoce.lab.simulation import Auxiliary, simulate
from sottovoce.shared import wire
from sottovoce.shared.methods import settings_from
from support.http import get, until
from support.in_process import serving_here


def test_the_service_runs_it_from_end_to_end(make: Make, tmp_path: Path) -> None:
    rng, walking = random.Random(11), make(epsilon=64.0, release_every=20, name="walking")
    fingerprint = walking.fingerprint
    with serving_here(tmp_path, [walking]) as server:
        client = sv.Client(
            server.url,
            experiment=fingerprint,
            keys=[server.key],
            most_epsilon=64.0,
            ledger=Purse(),
            outbox=tmp_path / "outbox",
            public_arms=True,
            refresh_every=0.001,
        )
        for count in range(60):
            decision = client.choose(rng.choice(PLACES))
            client.report(decision, reward=float(decision.arm == "reminder"))
            if count % 20 == 19:
                assert client.flush(timeout=60)
                server.wait_until_learned(walking)
        assert client.refused == {}
        # What the server has learned follows from its log, and reaches the device.
        learner = sv.Learner(walking)
        log = server.store.read(fingerprint, after=0, limit=100)
        assert learner.receive_many(log) == [None] * 60
        until(lambda: [client.refresh(), client.release == learner.release()][1])
        status = get(server, f"/experiments/{fingerprint}/status").json()
        page = get(server, f"/experiments/{fingerprint}")
        told = [
            get(server, f"/experiments/{fingerprint}/{part}")
            for part in ("estimates", "certificates", "diagnosis", "releases")
        ]
    assert "walking" in page.body.decode()
    assert walking.settings.summary in page.body.decode()
    assert [page.status, *(each.status for each in told)] == [200] * 5
    assert all(each.json() is not None for each in told)
    assert (status["stored"], status["learned"], status["reports"]["target"]) == (60, 60, 60)


class OneIsBest:
    """A world in which the second of three arms is best, everywhere."""

    arms, dimension = 3, 2

    def contexts(self, rng: np.random.Generator, n: int) -> Any:
        return rng.random((n, 2))

    def means(self, contexts: Any) -> Any:
        return np.tile([0.05, 0.95, 0.05], (len(contexts), 1))


def test_the_lab_simulates_it(table: dict[str, Any]) -> None:
    def play(**settings: Any) -> Any:
        chosen = {"method": table, "epsilon": 32.0, "n": 4000, "seed": 1, **settings}
        return simulate(OneIsBest(), points=[(0.1, 0.1), (0.9, 0.9)], **chosen)

    result = play()
    assert result.method == table["name"]
    assert result.people[-1] == 4000
    assert (np.diff(result.regret) >= 0).all()
    # Arms at random would lose 0.6 a person.
    assert result.regret[-1] < 0.75 * 0.6 * 4000
    assert result.release.experiment.settings == settings_from(table)
    assert wire.release_from_json(wire.release_to_json(result.release)) == result.release
    chosen = {device_of(result.release).choose({"x1": x, "x2": x}) for x in (0.1, 0.9)}
    assert chosen == {"arm 1"}
    # All randomness comes from the seed: where there is noise, decisions would tell.
    noisy, again, other = (play(epsilon=0.5, release_every=20, seed=s) for s in (1, 1, 2))
    assert noisy.regret.tolist() == again.regret.tolist()
    assert noisy.release == again.release
    assert noisy.regret.tolist() != other.regret.tolist()
    # Rows of a log come first.
    jumped = play(auxiliary=[Auxiliary(4000, 32.0)])
    assert jumped.reports == (4000, 4000)
    assert jumped.people[-1] == 4000
    assert jumped.regret[-1] < 0.75 * 0.6 * 4000
    assert jumped.diagnosis is None or len(jumped.diagnosis.sources) == 1
