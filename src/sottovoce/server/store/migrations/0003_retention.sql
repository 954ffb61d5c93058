-- What is left of reports that are kept no longer. Only with an operator who asks for it (serve
-- --keep-reports) does anything here have rows.

-- Up to which position the log went when a day (UTC) began for the learner. Nothing finer is known,
-- and the days of reports that are gone are gone, too.
CREATE TABLE arrival (
    experiment INTEGER NOT NULL REFERENCES experiment (id),
    day TEXT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (experiment, day)
);

-- The newest only: the learner as it was at the end of the last fold. Texts are packed with zlib.
CREATE TABLE checkpoint (
    experiment INTEGER PRIMARY KEY REFERENCES experiment (id),
    position BIGINT NOT NULL,
    text {bytes} NOT NULL
);

-- Folds 1, 2, 3, …: each begins where the one before ended, and ends at a position. Hashes of its
-- reports, of the learner at its end, and of both with all folds before. Bodies are empty up to
-- erased.
CREATE TABLE fold (
    experiment INTEGER NOT NULL REFERENCES experiment (id),
    number INTEGER NOT NULL,
    position BIGINT NOT NULL,
    reports TEXT NOT NULL,
    learner TEXT NOT NULL,
    hash TEXT NOT NULL,
    erased BIGINT NOT NULL,
    PRIMARY KEY (experiment, number)
);
