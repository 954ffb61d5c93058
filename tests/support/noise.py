"""A statistical check of the noise in every cell of a report, and its false-alarm rate."""

import numpy as np
from scipy import stats

import sottovoce as sv

FALSE_ALARM_RATE = 1e-6
"""The chance that ``faults`` finds something in honest reports."""


def faults(
    reports: list[sv.Report], *, truth: list[float], epsilon: float, rate: float = FALSE_ALARM_RATE
) -> list[str]:
    """Test each number of the reports for Laplace(4/ε) noise around the truth, in shape and in
    scale, and each pair for independence. The rate is shared out over all tests (Bonferroni)."""
    payloads = np.array([report.payload for report in reports])
    numbers, count = len(truth), len(reports)
    if payloads.shape != (count, numbers):
        return [f"reports have {payloads.shape[1:]} numbers, not {numbers}"]
    noise = (payloads - np.array(truth)) * (epsilon / 4)
    if silent := [position for position in range(numbers) if np.ptp(noise[:, position]) == 0]:
        return [f"numbers {silent} have no noise"]
    p_values = {}
    for one in range(numbers):
        p_values[f"the shape of number {one}"] = stats.kstest(noise[:, one], "laplace").pvalue
        # |Laplace(1)| is exponential, and so their sum is a gamma variable.
        tail = stats.gamma(count).cdf(np.abs(noise[:, one]).sum())
        p_values[f"the scale of number {one}"] = 2 * min(tail, 1 - tail)
        # Noise that is used twice, or is large in two places at once, shows up here.
        for other in range(one):
            for name, values in (("value", noise), ("size", np.abs(noise))):
                related = stats.spearmanr(values[:, one], values[:, other]).pvalue
                p_values[f"the {name} of numbers {one} and {other} together"] = related
    each = rate / len(p_values)
    return [f"{what}: p = {p:.1e}" for what, p in p_values.items() if p < each]
