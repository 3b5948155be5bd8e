"""Roles with the least rights: one that writes memories, for workers and schedulers, one that reads them.

The role that `memd store init` runs as owns the tables; no process of memd needs it afterwards.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from memd.errors import ConfigError

PASSWORD_VARIABLE = "STORE_PASSWORD_"  # noqa: S105  (a name; MEMD_* would be read as a setting)
PASSWORD_MIN = 16
ROUNDS = 4096
"""PostgreSQL's own number of rounds."""

WRITTEN = (
    "documents", "damaged", "ledger", "said", "sessions", "session_lines", "checkpoints", "tombstones",
    "reading_notes", "vector_sets", "vectors", "probes", "seals",
)  # fmt: skip
"""What the writer may select, insert, update and delete."""

READ = ("documents", "ledger", "said", "tombstones", "reading_notes", "vector_sets", "vectors")


class Role(NamedTuple):
    """A role: its name, its purpose, and its rights in the schema."""

    name: str
    purpose: str
    grants: tuple[str, ...]

    @property
    def variable(self) -> str:
        """The environment variable of its password."""
        return f"{PASSWORD_VARIABLE}{self.name.upper()}"


ROLES = (
    Role(
        "memd_writer",
        "schedulers, workers, the operator's commands, and whoever edits",
        (
            "GRANT SELECT ON memd.store TO memd_writer",
            *(f"GRANT SELECT, INSERT, UPDATE, DELETE ON memd.{table} TO memd_writer" for table in WRITTEN),
        ),
    ),
    Role(
        "memd_reader",
        "processes that only inject and search; they note what they found",
        (
            "GRANT SELECT (only_one, id, version, min_writer) ON memd.store TO memd_reader",
            *(f"GRANT SELECT ON memd.{table} TO memd_reader" for table in READ),
            "GRANT INSERT, UPDATE, DELETE ON memd.reading_notes TO memd_reader",
        ),
    ),
)


def statements(environ: Mapping[str, str]) -> Iterator[str]:
    """SQL for `psql`, which may be run again. Of a password only a verifier is in it. Raises ConfigError."""
    yield "BEGIN;"
    yield "REVOKE ALL ON SCHEMA memd FROM PUBLIC;"
    for role in ROLES:
        yield f"-- {role.name}: {role.purpose}"
        yield (f"DO $$ BEGIN CREATE ROLE {role.name} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;")
        password = environ.get(role.variable, "")
        if password:
            yield f"ALTER ROLE {role.name} PASSWORD '{_verifier(role, password)}';"
        yield f"GRANT USAGE ON SCHEMA memd TO {role.name};"
        yield from (f"{grant};" for grant in role.grants)
    yield "COMMIT;"


def _verifier(role: Role, password: str) -> str:
    """What PostgreSQL keeps of a password (SCRAM-SHA-256)."""
    if len(password) < PASSWORD_MIN or not password.isascii() or not password.isprintable():
        raise ConfigError(f"{role.variable} must have at least {PASSWORD_MIN} printable ASCII characters")
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ROUNDS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt_text, stored_text, server_text = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return f"SCRAM-SHA-256${ROUNDS}:{salt_text}${stored_text}:{server_text}"
