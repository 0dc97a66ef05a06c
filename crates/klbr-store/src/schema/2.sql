-- What an agent's adapters keep beside its records: cursors, sessions.
CREATE TABLE adapter_state (
    agent INTEGER NOT NULL,
    instance TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (agent, instance, key)
) WITHOUT ROWID;
