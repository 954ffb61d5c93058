-- The log of each experiment, and what was made of it. Nothing here tells when a report came, or
-- from where. {bytes}, {number} and {clustered} stand for what the two databases spell differently; a
-- statement ends with a semicolon at the end of a line.

CREATE TABLE experiment (
    id {number},
    fingerprint TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
);

-- Numbered 1, 2, 3, … without a gap for each experiment. No foreign key: a report is only written
-- by a transaction that found its experiment, experiments are never removed, and checking the key
-- for each row would take a third of the speed.
CREATE TABLE report (
    experiment INTEGER NOT NULL,
    position BIGINT NOT NULL,
    nonce {bytes} NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (experiment, position),
    UNIQUE (experiment, nonce)
) {clustered};

-- Position: how many reports of the log the release follows from. Texts are packed with zlib.
CREATE TABLE release (
    experiment INTEGER NOT NULL REFERENCES experiment (id),
    version INTEGER NOT NULL,
    position BIGINT NOT NULL,
    text {bytes} NOT NULL,
    PRIMARY KEY (experiment, version)
);

-- The newest only: the learner as it was after so many reports, to start from.
CREATE TABLE saved (
    experiment INTEGER PRIMARY KEY REFERENCES experiment (id),
    position BIGINT NOT NULL,
    text {bytes} NOT NULL
);

-- The newest only: what the learner tells the status pages.
CREATE TABLE standing (
    experiment INTEGER PRIMARY KEY REFERENCES experiment (id),
    position BIGINT NOT NULL,
    text {bytes} NOT NULL
);
