-- What an operator changed about an experiment: its amendments, 1, 2, 3, … in canonical JSON.
-- Position and version: how many reports the learner had counted when it took the amendment, and
-- the release that this led to; null until then.

CREATE TABLE amendment (
    experiment INTEGER NOT NULL REFERENCES experiment (id),
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    position BIGINT,
    version INTEGER,
    PRIMARY KEY (experiment, number)
);
