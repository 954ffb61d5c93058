import re

import sottovoce as sv
from sottovoce.shared import errors

NAMES = [
    *("AsyncClient", "BudgetSpent", "Categorical", "Client", "ContextError", "Device"),
    *("DeviceError", "Experiment", "ExperimentError", "Ldpmab", "Learner", "Ledger"),
    *("LedgerError", "Numeric", "Ordinal", "OutboxError", "Population", "Refused", "Rejection"),
    *("Release", "Report", "ReportRejected", "RewardError", "RowsError", "SignatureError"),
    *("SottovoceError", "StateError", "StoreError", "TransportError", "Whisper", "WireError"),
    "wire",
]


def test_the_public_names_are_these_and_all_can_be_had() -> None:
    assert sv.__all__ == NAMES
    assert all(hasattr(sv, name) for name in NAMES)
    assert not hasattr(sv, "Whisperer")


def test_every_error_is_a_sottovoce_error_and_a_value_error() -> None:
    every = [
        getattr(sv, name)
        for name in NAMES
        if name.endswith(("Error", "Spent", "Rejected", "Refused"))
    ]
    assert len(every) == 16
    assert all(issubclass(error, sv.SottovoceError) for error in every)
    assert issubclass(sv.SottovoceError, ValueError)


def test_the_tree_drawn_at_the_top_of_the_errors_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    rows = re.findall(r"^([│ ├└─]*)(\w+)(?: {2,}|$)", drawn, flags=re.MULTILINE)
    tree = [(len(stem) // 4, name) for stem, name in rows if hasattr(errors, name)]
    made = {name for name, each in vars(errors).items() if isinstance(each, type)}
    raised = {name for name in made if issubclass(getattr(errors, name), Exception)}
    assert sorted(name for _, name in tree) == sorted(raised)
    parents: dict[int, str] = {}
    for depth, name in tree:
        parents[depth] = name
        if depth:
            assert getattr(errors, name).__base__.__name__ == parents[depth - 1]
