import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.lab.sweeps import seed_of, sweep
from support.paths import ROOT
from support.tasks import slow_toss, toss

SETTINGS = [{"mean": mean} for mean in (0, 1, 2)]


def test_the_numbers_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    one = sweep(toss, SETTINGS, reps=10, path=tmp_path / "one.jsonl", workers=1)
    two = sweep(toss, SETTINGS, reps=10, path=tmp_path / "two.jsonl", workers=2)
    assert one == two
    assert len(one) == 30
    assert len({run.figures["value"] for run in one}) == 30
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_every_run_has_a_seed_of_its_own() -> None:
    seeds = {seed_of(setting, repetition) for setting in SETTINGS for repetition in range(1000)}
    assert len(seeds) == 3000


def test_settings_that_are_paired_share_the_seed_of_a_repetition(tmp_path: Path) -> None:
    settings = [{"mean": 0, "world": world, "method": m} for world in "ab" for m in "xyz"]
    runs = sweep(
        toss, settings, reps=4, path=tmp_path / "pairs.jsonl", workers=1, paired_by=["world"]
    )
    values = {(run.setting, run.repetition): run.figures["value"] for run in runs}
    for first in (0, 3):
        for repetition in range(4):
            assert len({values[first + k, repetition] for k in range(3)}) == 1
    assert len(set(values.values())) == 2 * 4
    alone = sweep(toss, settings, reps=4, path=tmp_path / "alone.jsonl", workers=1)
    assert len({run.figures["value"] for run in alone}) == 6 * 4


def test_a_file_with_other_pairs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    sweep(toss, SETTINGS, reps=2, path=path, workers=1)
    with pytest.raises(sv.ExperimentError, match="must be a file of this sweep"):
        sweep(toss, SETTINGS, reps=2, path=path, workers=1, paired_by=["mean"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [("mean", "be a list of keys; got 'mean'"), (["meen"], r"be keys of every setting; got \['m")],
)
def test_pairs_are_told_by_keys_of_the_settings(tmp_path: Path, keys: Any, message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=f"paired_by must {message}"):
        sweep(toss, SETTINGS, reps=1, path=tmp_path / "runs.jsonl", workers=1, paired_by=keys)


def test_a_sweep_that_was_killed_ends_with_the_same_file(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    sweep(slow_toss, SETTINGS, reps=40, path=whole, workers=2)
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'tests')\n"
        "from support.tasks import slow_toss; from sottovoce.lab.sweeps import sweep\n"
        f"settings = {SETTINGS!r}\n"
        f"sweep(slow_toss, settings, reps=40, path=Path({str(killed)!r}), workers=2)\n"
    )
    root = ROOT
    kills = 0
    for lines in (10, 50, 90):
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=root,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while not killed.exists() or len(killed.read_text().splitlines()) < lines:
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        assert lines <= len(killed.read_text().splitlines()) < 121
    with killed.open("a") as file:
        file.write('{"setting": 2, "repet')  # and one that was cut off in the middle of a line
    sweep(slow_toss, SETTINGS, reps=40, path=killed, workers=2)
    assert kills == 3
    assert killed.read_bytes() == whole.read_bytes()


def test_more_repetitions_can_be_asked_for_later(tmp_path: Path) -> None:
    grown, whole = tmp_path / "grown.jsonl", tmp_path / "whole.jsonl"
    first = sweep(toss, SETTINGS, reps=2, path=str(grown), workers=1)
    sweep(toss, SETTINGS, reps=6, path=grown, workers=1)
    sweep(toss, SETTINGS, reps=6, path=whole, workers=1)
    assert grown.read_bytes() == whole.read_bytes()
    assert sweep(toss, SETTINGS, reps=2, path=grown, workers=1) == first
    assert grown.read_bytes() == whole.read_bytes()


def test_a_finished_sweep_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    first = sweep(toss, SETTINGS, reps=3, path=path, workers=1)

    calls: list[int] = []

    def counting(setting: Any, seed: int) -> dict[str, float]:
        calls.append(seed)
        return toss(setting, seed)

    counting.__module__, counting.__qualname__ = toss.__module__, toss.__qualname__
    assert sweep(counting, SETTINGS, reps=3, path=path, workers=1) == first
    assert calls == []


@pytest.mark.parametrize("settings", [SETTINGS[:2], [{"mean": 9}, *SETTINGS[1:]]])
def test_a_file_of_another_sweep_is_refused_and_left_alone(tmp_path: Path, settings: Any) -> None:
    path = tmp_path / "runs.jsonl"
    sweep(toss, SETTINGS, reps=3, path=path, workers=1)
    before = path.read_bytes()
    with pytest.raises(sv.ExperimentError, match="must be a file of this sweep"):
        sweep(toss, settings, reps=3, path=path, workers=1)
    assert path.read_bytes() == before


def test_a_file_that_is_no_sweep_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("something precious\n")
    with pytest.raises(sv.ExperimentError, match="must be a file of this sweep"):
        sweep(toss, SETTINGS, reps=3, path=path, workers=1)
    assert path.read_text() == "something precious\n"


def test_a_damaged_line_in_the_middle_is_refused_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    sweep(toss, SETTINGS, reps=3, path=path, workers=1)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:3], "gibberish\n", *lines[4:]]))
    before = path.read_bytes()
    with pytest.raises(sv.ExperimentError, match="its line 4 is damaged"):
        sweep(toss, SETTINGS, reps=3, path=path, workers=1)
    assert path.read_bytes() == before


def test_a_file_that_was_killed_in_its_heading_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"task": "supp')
    assert len(sweep(toss, SETTINGS, reps=3, path=path, workers=1)) == 9


def test_runs_of_another_task_are_not_taken_for_these(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    sweep(toss, SETTINGS, reps=3, path=path, workers=1)
    with pytest.raises(sv.ExperimentError, match="another task"):
        sweep(slow_toss, SETTINGS, reps=3, path=path, workers=1)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\xff\xfe")
    with pytest.raises(sv.ExperimentError, match="it is no text"):
        sweep(toss, SETTINGS, reps=3, path=path, workers=1)
    assert path.read_bytes() == b"\x89PNG\r\n\xff\xfe"


@pytest.mark.parametrize("workers", [0, -2, 1.5])
def test_workers_must_be_a_positive_whole_number(tmp_path: Path, workers: Any) -> None:
    with pytest.raises(sv.ExperimentError, match="workers must be a whole number >= 1"):
        sweep(toss, SETTINGS, reps=1, path=tmp_path / "runs.jsonl", workers=workers)


def test_two_sweeps_cannot_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(sv.ExperimentError, match="another sweep has it open"):
            sweep(toss, SETTINGS, reps=3, path=path, workers=1)
    assert len(sweep(toss, SETTINGS, reps=3, path=path, workers=1)) == 9


@pytest.mark.parametrize("reps", [0, -1, 1.5, "3"])
def test_reps_must_be_a_positive_whole_number(tmp_path: Path, reps: Any) -> None:
    with pytest.raises(sv.ExperimentError, match="reps must be a whole number >= 1"):
        sweep(toss, SETTINGS, reps=reps, path=tmp_path / "runs.jsonl")


def test_a_folder_that_cannot_be_written_is_refused_before_any_work() -> None:
    with pytest.raises(sv.ExperimentError, match="must be a file that can be written"):
        sweep(toss, SETTINGS, reps=3, path=Path("/dev/null/runs.jsonl"))


@pytest.mark.slow
def test_ray_gives_the_same_file(tmp_path: Path) -> None:
    """On a local Ray, in a process of its own so that nothing of it is left behind."""
    expected = tmp_path / "joblib.jsonl"
    sweep(toss, SETTINGS, reps=5, path=expected, workers=1)
    path = tmp_path / "ray.jsonl"
    script = (
        "from pathlib import Path; import ray\n"
        "ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,\n"
        f"         runtime_env={{'env_vars': {{'PYTHONPATH': {os.pathsep.join(sys.path)!r}}}}})\n"
        "from support.tasks import toss; from sottovoce.lab.sweeps import sweep\n"
        f"settings = {SETTINGS!r}\n"
        f"sweep(toss, settings, reps=5, path=Path({str(path)!r}), workers=2, engine='ray')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_DEDUP_LOGS": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == expected.read_bytes()
