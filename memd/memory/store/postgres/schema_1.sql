-- The tables of memd, version 1. All are in the schema memd; a later version only adds to them, or raises min_writer.
--
-- A bucket, an owner (a user or a project) are 16-byte hashes; the ids that they are made of stand beside them once.
-- What memd writes is bytea, byte for byte what the store of JSON files writes, and hashes are SHA-256 over it.

-- One row: who this store is, and which versions of memd may write.
CREATE TABLE memd.store (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  id text,                                   -- random; the inbox knows it
  key bytea,                                 -- of the names in log lines
  version integer NOT NULL,                  -- of these tables
  min_writer integer NOT NULL                -- the lowest version that may still write
);

-- One row a bucket. It has two places for a document: a commit writes the one that is not the latest, so that the
-- version before stays and is not written again.
CREATE TABLE memd.documents (
  bucket bytea PRIMARY KEY,
  owner bytea NOT NULL,
  user_id text NOT NULL COLLATE "C",         -- '' for a project, and in a store that all users share
  agent_name text NOT NULL COLLATE "C",
  project_id text NOT NULL COLLATE "C",
  revision bigint NOT NULL,
  hash bytea NOT NULL,                       -- of the latest document
  commit_id uuid NOT NULL,                   -- random, of the commit that wrote it
  latest smallint NOT NULL CHECK (latest IN (1, 2)),
  first bytea,
  second bytea,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX documents_users ON memd.documents (user_id, agent_name) WHERE project_id = '';
CREATE INDEX documents_projects ON memd.documents (project_id) WHERE project_id <> '';

-- Documents and sessions whose bytes are none, set aside.
CREATE TABLE memd.damaged (
  bucket bytea NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  thread text COLLATE "C",                   -- of a session; null for a document
  data bytea
);
CREATE INDEX damaged_buckets ON memd.damaged (bucket);

-- The ledger: the identities of the messages that a bucket has taken in, by the name of their thread.
CREATE TABLE memd.ledger (
  bucket bytea NOT NULL,
  thread text NOT NULL COLLATE "C",
  identity text NOT NULL COLLATE "C",
  place bigint GENERATED ALWAYS AS IDENTITY, -- later ones are greater
  PRIMARY KEY (bucket, thread, identity)
);

-- The said layer: the lines of each commit. A document names its file and how many bytes of it count.
CREATE TABLE memd.said (
  bucket bytea NOT NULL,
  file text NOT NULL COLLATE "C",
  start bigint NOT NULL,                     -- bytes before these lines
  lines bytea NOT NULL,
  PRIMARY KEY (bucket, file, start)
);

CREATE TABLE memd.sessions (
  bucket bytea NOT NULL,
  thread text NOT NULL COLLATE "C",
  owner bytea NOT NULL,
  user_id text NOT NULL COLLATE "C",
  agent_name text NOT NULL COLLATE "C",
  hash bytea NOT NULL,
  commit_id uuid NOT NULL,
  data bytea NOT NULL,
  saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (bucket, thread)
);
CREATE INDEX sessions_users ON memd.sessions (user_id, agent_name);

-- What left the window of a session; its state names the file and how many bytes of it count.
CREATE TABLE memd.session_lines (
  bucket bytea NOT NULL,
  thread text NOT NULL COLLATE "C",
  file text NOT NULL COLLATE "C",
  start bigint NOT NULL,
  lines bytea NOT NULL,
  PRIMARY KEY (bucket, thread, file, start)
);

CREATE TABLE memd.checkpoints (
  bucket bytea NOT NULL,
  thread text NOT NULL COLLATE "C",
  id text NOT NULL COLLATE "C",
  owner bytea NOT NULL,
  user_id text NOT NULL COLLATE "C",
  agent_name text NOT NULL COLLATE "C",
  data bytea NOT NULL,
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  archived boolean NOT NULL DEFAULT false,
  PRIMARY KEY (bucket, thread, id)
);
CREATE INDEX checkpoints_users ON memd.checkpoints (user_id, agent_name);

-- Tombstones: the two texts that the store of JSON files writes. `changes` grows with every write of either.
CREATE TABLE memd.tombstones (
  owner bytea PRIMARY KEY,
  generation bigint NOT NULL,
  changes bigint NOT NULL,
  hashes bytea,                              -- null while only a wish is written down
  wishes bytea                               -- null without an open wish
);
CREATE INDEX tombstones_open ON memd.tombstones (owner) WHERE wishes IS NOT NULL;

CREATE TABLE memd.reading_notes (
  bucket bytea NOT NULL,
  owner bytea NOT NULL,
  fact text NOT NULL COLLATE "C",
  last double precision NOT NULL,            -- Unix seconds
  count bigint NOT NULL,
  heat double precision NOT NULL,            -- at `last`
  PRIMARY KEY (bucket, fact)
);
CREATE INDEX reading_notes_owners ON memd.reading_notes (owner);

-- For writes that only find out whether a write is durable here. It stays empty.
CREATE TABLE memd.probes (id uuid PRIMARY KEY);
