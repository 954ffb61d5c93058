"""TypeScript clients, as they are packed, and a real server."""

import json
import os
import subprocess

import pytest

import sottovoce as sv
from sottovoce.lab import running
from support.node import JS, built

PEOPLE = """
import { Client, Ledger, memoryStore } from "./dist/index.js";
const { SERVER, EXPERIMENT, KEY } = process.env;
let client;
let sent = 0;
for (let person = 0; person < 45; person++) {
  const ledger = new Ledger(memoryStore(), { budget: 1 });
  client = new Client(SERVER, { experiment: EXPERIMENT, keys: KEY, mostEpsilon: 1, ledger });
  const context = { age: 18 + Math.random() * 72, smokes: person % 2 === 0 };
  const decision = await client.choose(context);
  await client.report(decision, { reward: decision.arm === "coach" ? 1 : null });
  sent += await client.flush(20);
}
while (client.release.version === 1) await client.refresh(); // until the learner has counted them
console.log(JSON.stringify({ sent, refused: client.refused, version: client.release.version }));
"""


def test_reports_of_forty_five_people_are_counted_and_releases_are_followed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    node = built(tmp_path_factory.getbasetemp().parent)
    experiment = sv.Experiment(
        arms=["control", "coach"],
        context=[sv.Numeric("age", 18, 90), sv.Boolean("smokes")],
        epsilon=1.0,
        release_every=20,
    )
    with running([experiment]) as server:
        env = {"SERVER": server.url, "KEY": server.key, "EXPERIMENT": experiment.fingerprint}
        run = [node, "--input-type=module", "-e", PEOPLE]
        done = subprocess.run(
            run, cwd=JS, env={**os.environ, **env}, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["sent"], found["refused"]) == (45, {})
    assert found["version"] > 1
