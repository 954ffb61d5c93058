"""What was learned, taken out of a server, a database or a file."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.environments import Floats
from sottovoce.lab.local_server import LocalServer, running
from sottovoce.lab.people import visit, with_outcomes
from sottovoce.server.export import learned
from sottovoce.server.keys import SigningKey
from support.commands import Done, run
from support.policies import by_sqlite, python_function

EXPERIMENT = sv.Experiment(
    arms=["control", "coach"],
    context=[sv.Numeric("age", 18, 90)],
    epsilon=8.0,
    release_every=50,
    horizon=500,
)
CONTESTED = replace(EXPERIMENT, epsilon=0.1, name="contested")
OTHER = sv.Experiment(arms=["a", "b"], context=[sv.Boolean("x")], epsilon=1.0, name="other")


class OneCut:
    """Arm 0 is better below the middle, and arm 1 above."""

    arms = 2
    dimension = 1

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, 1))

    def means(self, contexts: Floats) -> Floats:
        above = (contexts[:, 0] > 0.5).astype(float)
        return np.stack([1 - above, above], axis=1)


@dataclass(frozen=True)
class Here:
    """A server that has learned, and its database."""

    server: LocalServer
    url: str

    @property
    def database(self) -> list[str]:
        return ["--database", self.url, "--signing-key", str(self.server.settings.key)]

    @property
    def running(self) -> list[str]:
        return ["--server", self.server.url, "--key", self.server.key]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    url = f"sqlite:///{tmp_path_factory.mktemp('export')}/reports.db"
    with running([EXPERIMENT, CONTESTED, OTHER], database=url) as server:
        rng = np.random.default_rng(0)
        visit(server, EXPERIMENT, with_outcomes(OneCut(), rng, 400))
        # So few, at so small an ε, that nothing is settled.
        visit(server, CONTESTED, with_outcomes(OneCut(), rng, 60))
        for each in (EXPERIMENT, CONTESTED):
            server.wait_until_learned(each)
        yield Here(server, url)


def export(*arguments: str, experiment: sv.Experiment = EXPERIMENT) -> Done:
    return run("export", experiment.fingerprint, *arguments)


@pytest.fixture
def policy_file(here: Here, tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    done = export(*here.database, "--format", "policy", "-o", str(path))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return path


def test_a_database_gives_a_policy_file_with_estimates(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    done = export(*here.database, "--format", "policy", "-o", str(path), experiment=CONTESTED)
    assert (done.returncode, done.stderr) == (0, "")
    policy = sv.Policy.load(path, keys=here.server.key)
    newest = here.server.store.newest_versions()[CONTESTED.fingerprint]
    assert (policy.release.experiment, policy.release.version) == (CONTESTED, newest)
    told = json.loads(here.server.get(f"/experiments/{CONTESTED.fingerprint}/estimates").body)
    assert len(policy.estimates) == len(told["estimates"]) >= 2
    best = max(told["estimates"], key=lambda each: each["estimate"])
    if len(policy.release.bins) == 1:
        assert policy.choose({"age": 42}) == best["arm"]


def test_a_policy_file_gives_the_same_forms_as_its_database(here: Here, policy_file: Path) -> None:
    for form in ("policy", "rules", "sql", "python"):
        from_file = run(
            "export", "--file", str(policy_file), "--key", here.server.key, "--format", form
        )
        assert from_file.returncode == 0, from_file.stderr
        assert from_file.stdout == export(*here.database, "--format", form).stdout
        assert from_file.stdout


def test_a_running_server_gives_a_release_as_it_has_signed_it(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    done = export(*here.running, "--format", "policy", "-o", str(path))
    assert done.returncode == 0, done.stderr
    policy = sv.Policy.load(path, keys=here.server.key)
    assert policy.estimates == {}
    address = f"/experiments/{EXPERIMENT.fingerprint}/releases/{policy.release.version}"
    assert here.server.get(address).body == path.read_bytes()
    if policy.release.contested:
        assert "bins are not settled, and there are no estimates" in done.stderr


def test_a_release_of_before_can_be_had(here: Here) -> None:
    for source in (here.database, here.running):
        done = export(*source, "--format", "rules", "--release", "1")
        assert done.returncode == 0, done.stderr
        assert "What release 1 has learned." in done.stdout
        assert "Everyone: **control**, not settled between control and coach" in done.stdout
        assert "1 of 1 bins are not settled, and there are no estimates" in done.stderr


def test_what_is_printed_is_what_a_form_says(here: Here, policy_file: Path) -> None:
    policy = sv.Policy.load(policy_file, keys=here.server.key)
    rng = np.random.default_rng(1)
    ages = [{"age": float(age)} for age in rng.uniform(0, 100, 200)]
    expected = [policy.choose(each) for each in ages]
    names: dict[str, object] = {}
    exec(export(*here.database, "--format", "python").stdout, names)  # noqa: S102
    assert [names["choose"](each) for each in ages] == expected  # type: ignore[operator]
    assert by_sqlite(policy, ages) == expected
    assert [python_function(policy)(each) for each in ages] == expected
    told = export(*here.database, "--format", "sql", "--table", "people").stdout
    assert '"people"."age"' in told


def test_the_first_experiment_need_not_be_named_if_it_is_the_only_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/one.db"
    with running([OTHER], database=url):
        done = run("export", "--database", url)
    assert done.returncode == 0, done.stderr
    assert "# Which arm for whom: other" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--database", "{url}"], "the experiment must name one of the database ("),
        (["ab", "--database", "{url}"], "error: the experiment must name one of the database ("),
        (["{id}", "--database", "{url}", "--release", "999"], "the release must be one of 1 to"),
        (
            ["{id}", "--database", "{url}", "--format", "policy", "--signing-key", "no.key"],
            "error: no.key must be a readable PEM file with a private key",
        ),
        (["--server", "{server}", "--key", "{key}"], "the fingerprint of the experiment must be"),
        (["{id}", "--server", "{server}"], "keys must hold at least one public key; got none"),
        (["{id}", "--server", "{server}", "--key", "{other}"], "a release must be signed by one"),
        (["{id}", "--server", "http://127.0.0.1:9", "--key", "{key}"], "no answer came"),
        (["{id}", "--server", "{server}", "--file", "x", "--key", "{key}"], "from --server or --"),
        (["--file", "no.json", "--key", "{key}"], "no.json must be a policy file that can be read"),
        (["--file", "{file}", "--key", "{other}"], "a policy must be signed by one of"),
        (["--file", "{file}"], "keys must hold at least one public key; got none"),
        (["{second}", "--file", "{file}", "--key", "{key}"], "must be of experiment"),
        (["--file", "{file}", "--key", "{key}", "--release", "99"], "must be of release 99; got"),
        (["{id}", "--database", "{url}", "-o", "/dev/null/x"], "must be a file that can be writ"),
    ],
)
def test_a_mistake_gets_one_clear_line(
    here: Here, policy_file: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    words = {
        "url": here.url,
        "server": here.server.url,
        "key": here.server.key,
        "other": SigningKey.create(tmp_path / "other.key").public.hex(),
        "file": str(policy_file),
        "id": EXPERIMENT.fingerprint,
        "second": OTHER.fingerprint,
    }
    done = run("export", *(each.format(**words) for each in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_no_signing_key_is_made(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "new.key"
    done = export("--database", here.url, "--format", "policy", "--signing-key", str(path))
    assert done.returncode == 2
    assert not path.exists()


def test_estimates_of_another_release_are_left_out(here: Here) -> None:
    found = learned(here.server.store, experiment=EXPERIMENT.fingerprint, version=1)
    assert found.release.version == 1
    assert found.release.contested
    assert found.estimates == {}


def test_the_help_says_what_each_form_is() -> None:
    done = run("export", "--help")
    assert done.returncode == 0
    for word in ("policy", "rules", "sql", "python", "--signing-key", "Markdown", "PostgreSQL"):
        assert word in done.stdout


def test_a_policy_file_is_one_line_of_ascii(policy_file: Path) -> None:
    assert json.loads(policy_file.read_text("ascii"))["kind"] == "signed policy"
