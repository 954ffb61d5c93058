-- Which keys have signed releases of this database: the ids of their public parts.

CREATE TABLE signer (key TEXT PRIMARY KEY);
