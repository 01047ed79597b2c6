-- Replies of a model, each under its scope and key.
CREATE TABLE IF NOT EXISTS replies (
    scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
