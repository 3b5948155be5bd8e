-- Version 2: vectors of facts. Writers of version 1 would leave those of removed facts.

-- Vectors of facts, for search by meaning. They are made after the commit of their facts, and may be made again.
CREATE TABLE memd.vector_sets (
  bucket bytea PRIMARY KEY,
  embedder bytea NOT NULL,                   -- a hash of what made them
  dimensions integer NOT NULL,
  stamp uuid NOT NULL                        -- random, of the last write
);
CREATE TABLE memd.vectors (
  bucket bytea NOT NULL,
  fact bytea NOT NULL,                       -- a hash of the fact's id and content
  vector bytea NOT NULL,                     -- half-precision floats, little-endian, of length 1; or a type of pgvector
  PRIMARY KEY (bucket, fact)
);
ALTER TABLE memd.vectors ALTER vector SET STORAGE MAIN; -- in their rows: a search reads all of a memory
