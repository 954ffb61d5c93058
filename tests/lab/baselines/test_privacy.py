"""The reports of the private baselines: their length and law; and proof that these tests can fail.

False alarms: ``faults`` finds something in honest reports with probability at most 1e-6, shared out
over its tests, and it is asked of honest reports 29 times here: with fresh seeds the file would
fail by chance in at most 29 of a million runs. Each mutation moves some test by ten standard
deviations or more.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import sottovoce as sv
from sottovoce.lab.baselines import Linear, Neural, sphere
from sottovoce.lab.baselines.descent import Descent, DescentPolicy, send
from sottovoce.lab.baselines.models import features
from sottovoce.lab.compiled import compiled
from sottovoce.lab.environments import Floats
from support.slow import slow_but

RATE = 1e-6
REPORTS = 20_000
CORNERS = [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.0, 1.0, 0.0), (0.5, 0.5, 0.5)]


def experiment(arms: int = 2, *, epsilon: float = 1.0, aux: float = 4.0) -> sv.Experiment:
    return sv.Experiment(
        arms=[f"arm {k}" for k in range(arms)],
        context=[sv.Numeric(f"x{axis}", 0, 1) for axis in range(3)],
        epsilon=epsilon,
        auxiliary=[sv.Population("rows", aux, 10)],
    )


def descent_of(baseline: Linear | Neural, asked: sv.Experiment) -> Descent:
    policy = baseline(asked)
    assert isinstance(policy, DescentPolicy)
    return policy.state


@compiled
def collect(
    descent: Descent,
    rng: np.random.Generator,
    population: int,
    context: Floats,
    arm: int,
    reward: float,
    reports: Floats,
) -> None:
    """What as many people with the same data send."""
    for i in range(len(reports)):
        features(context, descent.phi)
        send(descent, rng, population, arm, reward)
        for j in range(len(descent.report)):
            reports[i, j] = descent.report[j]


def loss(theta: Floats, context: Any, reward: float, width: int) -> float:
    """The logistic loss, once more and plainly."""
    phi = np.array([1.0, *(2 * np.array(context) - 1)])
    if width:
        layer = theta[1 + width :].reshape(width, len(phi))
        score = theta[0] + theta[1 : 1 + width] @ np.tanh(layer @ phi)
    else:
        score = theta @ phi / math.sqrt(len(phi))
    return float(np.logaddexp(0, score) - reward * score)


def truth(descent: Descent, context: Any, arm: int, reward: float) -> Floats:
    """The gradient by differences, among the zeros of the other arms, no longer than the clip."""
    vector = np.zeros_like(descent.theta)
    theta, tiny = descent.theta[arm], 1e-5
    for j in range(len(theta)):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += tiny
        behind[j] -= tiny
        width = len(descent.hidden)
        slope = loss(ahead, context, reward, width) - loss(behind, context, reward, width)
        vector[arm, j] = slope / (2 * tiny)
    flat = vector.ravel()
    norm = float(np.linalg.norm(flat))
    return np.asarray(flat * min(1.0, descent.settings.clip / max(norm, 1e-300)))


def faults(reports: Floats, vector: Floats, *, epsilon: float, bound: float) -> list[str]:
    """Test the law of ``sphere``: how long each report is, in which half, and where there."""
    count, size = reports.shape
    mean_length = math.sqrt(math.pi) * special.gamma((size + 1) / 2) / special.gamma(size / 2)
    length = bound * (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1) * mean_length
    lengths = np.linalg.norm(reports, axis=1)
    if not np.allclose(lengths, length, rtol=1e-9):
        return [f"reports are {lengths.min():g} to {lengths.max():g} long, not {length:g}"]
    norm = float(np.linalg.norm(vector))
    along = vector / norm if norm > 0 else np.eye(size)[0]
    basis, _ = np.linalg.qr(np.column_stack([along, np.eye(size)[:, : size - 1] + 1e-3]))
    turned = reports @ basis / length * np.sign(basis[:, 0] @ along)
    towards, keep = 0.5 + norm / (2 * bound), math.exp(epsilon) / (1 + math.exp(epsilon))
    chance = towards * keep + (1 - towards) * (1 - keep)
    ahead = int((turned[:, 0] > 0).sum())
    p_values = {"the half": stats.binomtest(ahead, count, chance).pvalue}
    halves = stats.beta(0.5, (size - 1) / 2)
    p_values["how far along"] = stats.kstest(turned[:, 0] ** 2, halves.cdf).pvalue
    whole = stats.beta((size - 1) / 2, (size - 1) / 2)
    for j in range(1, size):
        p_values[f"across, {j}"] = stats.kstest((turned[:, j] + 1) / 2, whole.cdf).pvalue
        for other in (0, j - 1):
            related = stats.spearmanr(turned[:, j], turned[:, other]).pvalue
            p_values[f"{j} and {other} together"] = related
    each = RATE / len(p_values)
    return [f"{what}: p = {p:.1e}" for what, p in p_values.items() if p < each]


@pytest.mark.parametrize("epsilon", slow_but([1.0], [0.5, 1.0, 4.0]))
@pytest.mark.parametrize("arms", [2, 3])
@pytest.mark.parametrize("baseline", [Linear(), Neural(width=2)])
def test_reports_have_the_law_of_the_mechanism(
    baseline: Linear | Neural, arms: int, epsilon: float
) -> None:
    descent = descent_of(baseline, experiment(arms, epsilon=epsilon))
    descent.theta[:] = np.random.default_rng(1).normal(size=descent.theta.shape)
    rng = np.random.default_rng(2)
    reports = np.empty((REPORTS, descent.theta.size))
    for context, arm, reward in ((CORNERS[2], 0, 1.0), ((0.3, 0.9, 0.2), arms - 1, 0.25)):
        collect(descent, rng, 0, np.array(context), arm, reward, reports)
        vector = truth(descent, context, arm, reward)
        bound = descent.settings.clip
        assert faults(reports, vector, epsilon=epsilon, bound=bound) == []


def test_an_auxiliary_row_has_the_noise_of_its_own_epsilon() -> None:
    descent = descent_of(Linear(), experiment(epsilon=1.0, aux=4.0))
    reports = np.empty((REPORTS, descent.theta.size))
    collect(descent, np.random.default_rng(3), 1, np.array(CORNERS[1]), 1, 0.0, reports)
    vector = truth(descent, CORNERS[1], 1, 0.0)
    assert faults(reports, vector, epsilon=4.0, bound=1.0) == []
    assert faults(reports, vector, epsilon=1.0, bound=1.0) != []


def test_somebody_with_nothing_to_tell_sends_a_report_like_anyone_else_s() -> None:
    """A gradient of 0: the reward is what was expected."""
    descent = descent_of(Linear(), experiment())
    reports = np.empty((REPORTS, descent.theta.size))
    collect(descent, np.random.default_rng(4), 0, np.array(CORNERS[3]), 0, 0.5, reports)
    assert faults(reports, np.zeros(descent.theta.size), epsilon=1.0, bound=1.0) == []


@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("baseline", [Linear(), Neural(), Neural(width=3, clip=0.25)])
def test_no_input_makes_a_report_longer_or_shorter(baseline: Linear | Neural, size: float) -> None:
    """Sensitivity: over corners of the cube, rewards, arms, and parameters of any size."""
    descent = descent_of(baseline, experiment(3))
    rng = np.random.default_rng(5)
    reports = np.empty((2, descent.theta.size))
    for context in CORNERS:
        for reward in (0.0, 0.5, 1.0):
            for arm in range(3):
                descent.theta[:] = size * rng.normal(size=descent.theta.shape)
                collect(descent, rng, 0, np.array(context), arm, reward, reports)
                lengths = np.linalg.norm(reports, axis=1)
                assert lengths == pytest.approx(descent.reach[0], rel=1e-9)
                assert np.isfinite(reports).all()
                if isinstance(baseline, Linear):
                    assert np.linalg.norm(descent.gradient) <= 1 + 1e-12


def test_a_gradient_that_is_too_long_is_shortened() -> None:
    descent = descent_of(Neural(width=2, clip=0.25), experiment())
    descent.theta[:] = np.random.default_rng(6).normal(size=descent.theta.shape)
    reports = np.empty((REPORTS, descent.theta.size))
    collect(descent, np.random.default_rng(7), 0, np.array(CORNERS[0]), 1, 1.0, reports)
    assert np.linalg.norm(descent.gradient) > 0.25
    vector = truth(descent, CORNERS[0], 1, 1.0)
    assert np.linalg.norm(vector) == pytest.approx(0.25)
    assert faults(reports, vector, epsilon=1.0, bound=0.25) == []


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 8.0])
def test_the_density_ratio_is_e_to_the_epsilon_and_reports_are_unbiased(epsilon: float) -> None:
    """No statistics: the two numbers of the mechanism, and the mean length along the vector."""
    keep = sphere.keep_chance(epsilon)
    assert keep / (1 - keep) == pytest.approx(math.exp(epsilon), rel=1e-9)
    for size in (1, 2, 3, 8, 28, 287):
        # E|first coordinate| of a uniform point of the unit sphere.
        along = math.exp(math.lgamma(size / 2) - math.lgamma((size + 1) / 2)) / math.sqrt(math.pi)
        reach = sphere.length(size, epsilon=epsilon, bound=0.5)
        # At ‖v‖ = r the half is kept with chance p: the mean is (2p - 1)·B·E|z_1| = r.
        assert (2 * keep - 1) * reach * along == pytest.approx(0.5, rel=1e-9)


# --- mutations: each breaks the promise, or the estimate, and each must be found ------------------

VECTOR = np.array([0.0, 0.0, 0.3, -0.4, 0.0, 0.0])


def plain_reports(
    draw: Callable[..., None], *, keep: float, reach: float, vector: Floats = VECTOR
) -> Floats:
    """Draw reports by the mechanism's own source, not compiled."""
    rng = np.random.default_rng(8)
    reports = np.empty((REPORTS, 6))
    for report in reports:
        draw(rng, vector[2:4].tolist(), 2, 1.0, keep, reach, report)
    return reports


def found(
    change: tuple[str, str] | None = None,
    *,
    keep_by: float = 1.0,
    reach_by: float = 1.0,
    vector: Floats = VECTOR,
) -> list[str]:
    # Compiled functions have their source in an attribute that mypy does not know of.
    source = inspect.getsource(sphere.draw_report.py_func)  # type: ignore[attr-defined]
    source = source.removeprefix("@inlined\n")
    if change is not None:
        assert source.count(change[0]) == 1
        source = source.replace(*change)
    world: dict[str, Any] = {"np": np, "Floats": Floats}
    exec(source, world)  # noqa: S102 - the mutated source
    reports = plain_reports(
        world["draw_report"],
        keep=sphere.keep_chance(keep_by),
        reach=reach_by * sphere.length(6, epsilon=1.0, bound=1.0),
        vector=vector,
    )
    return faults(reports, vector, epsilon=1.0, bound=1.0)


def test_the_unmutated_source_passes() -> None:
    assert found() == []
    assert found(vector=np.zeros(6)) == []


def test_halved_noise_is_found() -> None:
    assert found(keep_by=2.0) != []
    assert found(reach_by=0.5) != []


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        ("rng.random() < keep", "rng.random() < keep + 0.05"),
        ("rng.random() < keep", "True"),
        ("0.5 + norm / (2.0 * bound)", "0.5 + norm / bound"),
        ("0.5 + norm / (2.0 * bound)", "1.0"),
        ("report[first + j]", "report[j]"),
        ("scale = -scale", "pass"),
        ("report[j] *= scale", "report[j] *= scale * (j >= first)"),
        ("report[j] *= scale", "report[j] = abs(report[j]) * scale"),
        ("reach / np.sqrt(squares)", "reach / np.sqrt(len(report))"),
        ("report[j] = rng.standard_normal()", "report[j] = rng.random() - 0.5"),
    ],
)
def test_a_mutated_mechanism_is_found(change: tuple[str, str]) -> None:
    assert found(change) != []


def test_a_person_with_nothing_to_tell_who_gives_themselves_away_is_found() -> None:
    silent = ("scale = reach / np.sqrt(squares)", "scale = reach / np.sqrt(squares) * (norm > 0)")
    assert found(silent, vector=np.zeros(6)) != []
