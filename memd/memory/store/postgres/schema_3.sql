-- Version 3: a store can be sealed, and its content moved to another store.

-- The version before has its ledger inside: it was copied from a file.
ALTER TABLE memd.documents ADD COLUMN before_is_file boolean NOT NULL DEFAULT false;

-- One row while this store is moved to another one, or from another one: it takes no writes then.
CREATE TABLE memd.seals (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  role text NOT NULL CHECK (role IN ('source', 'target')),
  other text NOT NULL                        -- the id of the other store
);

-- Every write calls it, under a lock of its own that whoever seals the store takes alone. Writers before it do not.
CREATE FUNCTION memd.refuse_sealed() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM memd.seals) THEN
    RAISE EXCEPTION USING ERRCODE = 'MEMD1', MESSAGE = 'sealed';
  END IF;
END $$;
