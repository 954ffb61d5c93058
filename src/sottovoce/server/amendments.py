"""Amendments in the database → documents, and what an experiment is after them."""

import json
from collections.abc import Iterable, Sequence

from sottovoce.server.store.log import LoggedAmendment
from sottovoce.server.store.store import Store
from sottovoce.shared.amending import amended
from sottovoce.shared.amendment import Amendment
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import ExperimentError, StoreDamaged, StoreError
from sottovoce.shared.experiment import Experiment


def text_of(amendment: Amendment) -> str:
    """Write an amendment for the database."""
    return canonical_json(amendment.to_table()).decode()


def document_of(logged: LoggedAmendment) -> Amendment:
    """Read an amendment from the database; refuse a text that ``text_of`` did not write."""
    try:
        amendment = Amendment.from_table(json.loads(logged.text))
    except (ExperimentError, ValueError, RecursionError):
        amendment = None
    if amendment is None or text_of(amendment) != logged.text:
        raise StoreDamaged(f"amendment {logged.number} must be as it was written; it is not")
    return amendment


def experiment_after(experiment: Experiment, logged: Iterable[LoggedAmendment]) -> Experiment:
    """Return what an experiment is after amendments of the database, which follow its own."""
    for each in logged:
        document = document_of(each)
        if each.number != len(experiment.amendments) + 1:
            number = len(experiment.amendments) + 1
            raise StoreDamaged(f"amendment {number} must be in the database; it is missing")
        try:
            experiment = amended(experiment, document)
        except ExperimentError as error:
            raise StoreDamaged(
                f"amendment {each.number} must follow from those before it; {error}"
            ) from None
    return experiment


def as_amended(store: Store, experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return experiments as they are by now; as they began, where the database cannot tell."""
    try:
        known = {fingerprint for fingerprint, _ in store.experiments()}
        return [
            experiment_after(each, store.amendments(each.fingerprint))
            if each.fingerprint in known
            else each
            for each in experiments
        ]
    except StoreError:
        return list(experiments)
