-- One row of a per-agent series has the key `agent << 40 | number`, so that a series is one range of a table.

CREATE TABLE agents (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- How many memories were ever made.
    memories INTEGER NOT NULL DEFAULT 0,
    -- The last record that the history index covers.
    indexed INTEGER NOT NULL DEFAULT 0,
    -- How much of the text of the record after it is covered too.
    indexed_bytes INTEGER NOT NULL DEFAULT 0
);

-- What has happened. Append-only.
CREATE TABLE records (
    key INTEGER PRIMARY KEY,
    agent INTEGER GENERATED ALWAYS AS (key >> 40) VIRTUAL,
    seq INTEGER GENERATED ALWAYS AS (key & 0xFFFFFFFFFF) VIRTUAL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    agent INTEGER GENERATED ALWAYS AS (key >> 40) VIRTUAL,
    event INTEGER GENERATED ALWAYS AS (key & 0xFFFFFFFFFF) VIRTUAL,
    instance TEXT NOT NULL,
    external_id TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE UNIQUE INDEX events_once ON events (agent, instance, external_id);

CREATE TABLE event_fates (
    key INTEGER PRIMARY KEY,
    agent INTEGER GENERATED ALWAYS AS (key >> 40) VIRTUAL,
    event INTEGER GENERATED ALWAYS AS (key & 0xFFFFFFFFFF) VIRTUAL,
    fate TEXT NOT NULL
);
CREATE INDEX event_fates_framed ON event_fates (key) WHERE fate = 'framed';

-- Where the result of a call stands; the text is in the record.
CREATE TABLE call_results (
    key INTEGER PRIMARY KEY,
    agent INTEGER GENERATED ALWAYS AS (key >> 40) VIRTUAL,
    result INTEGER GENERATED ALWAYS AS (key & 0xFFFFFFFFFF) VIRTUAL,
    seq INTEGER NOT NULL
);

-- Folded states: a cache. `sum` is SHA-256 over the body.
CREATE TABLE checkpoints (
    key INTEGER PRIMARY KEY,
    agent INTEGER GENERATED ALWAYS AS (key >> 40) VIRTUAL,
    seq INTEGER GENERATED ALWAYS AS (key & 0xFFFFFFFFFF) VIRTUAL,
    sum BLOB NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE memories (
    key INTEGER PRIMARY KEY,
    agent INTEGER GENERATED ALWAYS AS (key >> 40) VIRTUAL,
    memory INTEGER GENERATED ALWAYS AS (key & 0xFFFFFFFFFF) VIRTUAL,
    text TEXT NOT NULL,
    tags TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    at INTEGER NOT NULL
);

-- What each change of the memories was answered with, so that a repeat changes nothing.
CREATE TABLE memory_answers (
    agent INTEGER NOT NULL,
    change TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (agent, change)
) WITHOUT ROWID;

-- The history index: derived, made anew from the records whenever it has to be.
CREATE TABLE places (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    conversation TEXT
);

-- A piece of the searchable text of one record, from byte `start` to byte `stop`.
CREATE TABLE passages (
    id INTEGER PRIMARY KEY,
    record INTEGER NOT NULL,
    place INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL
);

CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE parts USING fts5 (
    text, content = '', columnsize = 0, detail = 'none', tokenize = 'trigram'
);
