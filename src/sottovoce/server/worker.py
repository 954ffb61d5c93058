"""A worker: what the endpoints of one process share."""

from dataclasses import dataclass

from sottovoce.estimate.learner import Learner
from sottovoce.server.catalogue import Catalogue
from sottovoce.server.health import Health
from sottovoce.server.ingest import Ingest
from sottovoce.server.keys import SigningKey
from sottovoce.server.marks import Marks
from sottovoce.server.settings import ServerSettings
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Worker:
    """The settings, the key, the database, the experiments in it, and the way for reports."""

    settings: ServerSettings
    key: SigningKey
    store: Store
    catalogue: Catalogue
    ingest: Ingest
    health: Health
    marks: Marks

    @classmethod
    def open(cls, settings: ServerSettings) -> "Worker":
        """Set up; the database need not be there yet."""
        key = SigningKey.read(settings.key)
        store = Store.open(settings.database)
        catalogue = Catalogue(store, key)
        health = Health(settings.folder)
        ingest = Ingest(store, catalogue, most_waiting=settings.most_waiting, health=health)
        marks = Marks(settings.key, settings.database)
        return cls(settings, key, store, catalogue, ingest, health, marks)

    def set_up(self) -> None:
        """Bring the schema up to date, and begin the experiments of the settings."""
        self.store.migrate()
        self.store.note_signer(self.key.id, is_new=self.settings.new_key)
        for experiment in self.settings.experiments:
            self.add(experiment)

    def add(self, experiment: Experiment) -> bool:
        """Store an experiment with its first release; say whether it is new."""
        first = wire.release_to_json(Learner(experiment).release())
        text = canonical_json(experiment.to_table()).decode()
        return self.store.add_experiment(experiment.fingerprint, text, first)

    def look(self) -> None:
        """Note what is published, and whether the learner gets on."""
        progress = self.store.progress()
        self.health.look(progress)
        self.marks.note(self.catalogue.marks(progress))

    def close(self) -> None:
        """End the thread that writes, and close the database."""
        self.ingest.close()
        self.store.close()
