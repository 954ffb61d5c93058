import sottovoce as sv

NAMES = [
    *("BudgetSpent", "Categorical", "ContextError", "Device", "DeviceError", "Experiment"),
    *("ExperimentError", "Ldpmab", "Learner", "Ledger", "LedgerError", "Numeric", "Ordinal"),
    *("Population", "Rejection", "Release", "Report", "ReportRejected", "RewardError"),
    *("SottovoceError", "StateError", "WireError"),
]


def test_the_public_names_are_these_and_all_can_be_had() -> None:
    assert sv.__all__ == NAMES
    assert all(hasattr(sv, name) for name in NAMES)
    assert not hasattr(sv, "Whisperer")


def test_every_error_is_a_sottovoce_error_and_a_value_error() -> None:
    errors = [getattr(sv, name) for name in NAMES if name.endswith(("Error", "Spent", "Rejected"))]
    assert len(errors) == 10
    assert all(issubclass(error, sv.SottovoceError) for error in errors)
    assert issubclass(sv.SottovoceError, ValueError)
