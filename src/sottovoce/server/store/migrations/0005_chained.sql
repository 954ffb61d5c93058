-- The log of each experiment, hashed in order (chained.py): after how many reports, and their hash.
-- Reports up to begins are erased; before is the hash that the next one follows.

CREATE TABLE chained (
    experiment INTEGER PRIMARY KEY REFERENCES experiment (id),
    begins BIGINT NOT NULL,
    before TEXT NOT NULL,
    position BIGINT NOT NULL,
    hash TEXT NOT NULL
);
