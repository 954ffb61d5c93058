"""The device's randomness is the operating system's, for every draw and at every size."""

import ast
import random
import secrets
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import four_bins
from sottovoce.device import device
from sottovoce.device.coins import FreshCoins
from sottovoce.device.method import draw_arm
from sottovoce.device.whisper.subset import whisper
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.whisper.subset import signed_subset

FOLDER = Path(device.__file__).parent
NOISY = "draws coins groups device method privatise"
MAKES_NOISE = [*(f"{name}.py" for name in NOISY.split()), "whisper", "ldpmab"]


def modules_that_make_noise() -> list[Path]:
    paths = [FOLDER / name for name in MAKES_NOISE]
    return [file for path in paths for file in ([path] if path.suffix else path.glob("*.py"))]


@pytest.mark.parametrize("file", modules_that_make_noise(), ids=lambda file: file.name)
def test_no_module_that_makes_noise_knows_another_generator(file: Path) -> None:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    assert not names & {"random", "numpy", "SystemRandom", "Random", "__import__", "importlib"}


# N cells and w of them: few picks, more than 64, more than 256, and a complement.
@pytest.mark.parametrize(
    ("cells", "size"), [(5, 2), (200, 200), (200, 65), (300, 150), (600, 300), (600, 500)]
)
def test_all_randomness_of_a_set_comes_from_secrets(
    monkeypatch: pytest.MonkeyPatch, cells: int, size: int
) -> None:
    """Where secrets stands still, so does the set; where it moves, no seed brings it back."""
    mechanism = signed_subset(1.0, cells, size=size)
    sent = set()
    for _ in range(20):
        random.seed(0)
        sent.add(whisper(mechanism, cell=1, value=0.3))
    assert len(sent) > 5
    monkeypatch.setattr(secrets, "randbelow", lambda limit: limit // 3)
    monkeypatch.setattr(secrets, "randbits", lambda count: 2**count // 3)
    for cell in (None, 1):
        same = set()
        for seed in range(5):
            random.seed(seed)
            same.add(whisper(mechanism, cell=cell, value=0.3))
        assert len(same) == 1


def test_all_randomness_of_a_report_comes_from_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda limit: limit // 3)
    monkeypatch.setattr(secrets, "randbits", lambda count: 2**count // 3)
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    seen = set()
    for seed in range(5):
        random.seed(seed)
        person = sv.Device(four_bins())
        arm = person.choose({"age": 20, "bmi": 20})
        seen.add((arm, person.report(reward=0.3)))
    assert len(seen) == 1


@pytest.mark.parametrize("arms", [1, 2, 3])
def test_everybody_draws_53_bits_for_the_arm(monkeypatch: pytest.MonkeyPatch, arms: int) -> None:
    asked: list[Any] = []
    drawn = [0]

    def randbits(count: int) -> int:
        asked.append(count)
        return drawn[0]

    monkeypatch.setattr(secrets, "randbits", randbits)
    chances = {1: (1.0,), 2: (0.25, 0.75), 3: (0.25, 0.25, 0.5)}[arms]
    policy = BinPolicy("", tuple(range(arms)), chances)
    release = sv.Release(four_bins().experiment, 1, Partition(2), (policy,))
    ends = {1: [], 2: [2**51], 3: [2**51, 2**52]}[arms]
    for arm, (first, last) in enumerate(
        zip([0, *ends], [*(end - 1 for end in ends), 2**53 - 1], strict=True)
    ):
        for each in (first, last):
            drawn[0] = each
            assert draw_arm(release, policy, FreshCoins()) == arm
    assert set(asked) == {53}
