"""The package that npm makes of ``js/``: its rules, and that it works in an empty project."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import sottovoce as sv
from support.fake_server import FakeServer, on_loopback
from support.node import JS, built

TYPED = """
import { BudgetSpent, Client, Ledger, browserStore, type Store } from "sottovoce";
import { Device, releaseFromJson } from "sottovoce/device";
import { fileStore } from "sottovoce/node";

const outbox: Store = fileStore("outbox.json");
const ledger = new Ledger(browserStore("ledger"), { budget: 4, per: "30 days" });
const settings = { experiment: "…", keys: ["…"], outbox, ledger };
const client = new Client("https://example.org", { ...settings, mostEpsilon: 1 });
const decision = await client.choose({ age: 42, city: null, smokes: true });
const told: [string, Date, boolean] = [decision.arm, decision.expires, decision.asked];
await client.report(decision, { reward: null });
new Device(releaseFromJson("…")).choose({ age: 42 });
console.log(told, new BudgetSpent("…").message);
// @ts-expect-error  a reward is no text
await client.report(decision, { reward: "much" });
// @ts-expect-error  the app must say the most ε that its people have agreed to
new Client("https://example.org", settings);
"""
MODULES = sorted((JS / "src").rglob("*.ts"))
OTHERS = sorted([*JS.glob("*.js"), *(JS / "test").glob("*.js")])


@pytest.mark.parametrize("module", [*MODULES, *OTHERS], ids=lambda path: path.name)
def test_every_module_is_short_and_says_what_it_is_about(module: Path) -> None:
    text = module.read_text()
    assert text.startswith("/**")
    assert len(text.splitlines()) <= 400


def test_each_module_of_the_core_mirrors_a_room() -> None:
    assert {
        path.relative_to(JS / "src").parts[0] for path in MODULES if path.parent != JS / "src"
    } == {
        "shared",
        "device",
    }
    for path in (JS / "src" / "shared").rglob("*.ts"):
        assert not re.search(r'from "[./]*device/', path.read_text()), path.name


def test_nothing_of_the_package_names_a_registry() -> None:
    for name in ("package.json", "package-lock.json", ".npmrc", "build.js", "README.md"):
        assert not re.search(
            r"https?://[^\s\"]*npm|\"resolved\"|registry\s*=", (JS / name).read_text()
        )


def test_the_package_has_the_version_of_the_other_one_and_no_dependencies() -> None:
    package = json.loads((JS / "package.json").read_text())
    assert package["version"] == sv.__version__
    assert "dependencies" not in package


@pytest.mark.slow
def test_the_package_works_in_an_empty_project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The README's example, as printed, with a server."""
    node = built(tmp_path_factory.getbasetemp().parent)
    npm = shutil.which("npm")
    assert npm is not None

    def run(*words: str, folder: Path = tmp_path, more: dict[str, str] | None = None) -> str:
        env = {**os.environ, **(more or {})}
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(npm, "pack", "--ignore-scripts", "--pack-destination", str(tmp_path), folder=JS)
    (packed,) = tmp_path.glob("*.tgz")
    (tmp_path / "package.json").write_text('{"name": "empty", "private": true, "type": "module"}')
    run(npm, "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", str(packed))
    (example,) = re.findall(r"```js\n(.*?)```", (JS / "README.md").read_text(), re.DOTALL)
    (tmp_path / "example.js").write_text(example)
    experiment = sv.Experiment(
        arms=["control", "reminder", "coach"],
        context=[sv.Numeric("age", 18, 90), sv.Numeric("bmi", 15, 45)],
        epsilon=1.0,
    )
    server = FakeServer(experiment)
    with on_loopback(server) as address:
        about = {"SERVER": address, "EXPERIMENT": server.experiment, "KEY": server.key.public.hex()}
        said = run(node, "example.js", more=about)
    assert said.strip().removeprefix("for this person: ") in experiment.arms
    assert len(server.bodies) == 1
    (tmp_path / "typed.ts").write_text(TYPED)
    compiler = str(JS / "node_modules" / "typescript" / "bin" / "tsc")
    strict = ["--strict", "--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext"]
    run(node, compiler, "--noEmit", *strict, "typed.ts")
