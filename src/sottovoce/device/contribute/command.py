"""What the command ``contribute`` does with its arguments."""

from collections.abc import Sequence
from pathlib import Path

from sottovoce.device.contribute.contribute import contribute
from sottovoce.device.contribute.link import OnWait
from sottovoce.device.contribute.summary import Contribution, OnProgress
from sottovoce.shared.errors import RowsError, must


def run(
    files: Sequence[Path],
    *,
    server: str,
    experiment: str,
    keys: Sequence[str],
    population: str,
    epsilon: float,
    arm: str,
    reward: str,
    rename: Sequence[str],
    state: Path | None,
    refused: Path | None,
    only_check: bool,
    patience: float,
    progress: OnProgress | None,
    on_wait: OnWait | None,
) -> Contribution:
    """Contribute files; ``contribute`` explains the settings.

    rename: each as feature=column.
    """
    return contribute(
        server,
        files,
        experiment=experiment,
        keys=keys,
        population=population,
        epsilon=epsilon,
        arm_column=arm,
        reward_column=reward,
        renamed=dict(_renamed(each) for each in rename),
        state=state,
        refused=refused,
        only_check=only_check,
        patience=patience,
        progress=progress,
        on_wait=on_wait,
    )


def _renamed(text: str) -> tuple[str, str]:
    feature, sign, column = text.partition("=")
    if not (feature and sign and column):
        raise RowsError(must("a renamed feature", "be written as feature=column", repr(text)))
    return feature, column
