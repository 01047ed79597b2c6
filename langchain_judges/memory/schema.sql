-- Documents of a memory, their vectors, and the numbers of those that were removed.
PRAGMA page_size = 16384;
PRAGMA application_id = 1818454637;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
CREATE TABLE facts (changes INTEGER, rows INTEGER, embedder TEXT, width INTEGER);
CREATE TABLE documents (
    key INTEGER PRIMARY KEY AUTOINCREMENT, document BLOB, vector BLOB, checksum INTEGER
);
CREATE TABLE removed (number INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER);
INSERT INTO facts VALUES (0, 0, '', 0);
