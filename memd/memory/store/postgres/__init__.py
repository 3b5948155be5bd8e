"""Memories in PostgreSQL. `store.class` names its class by this path."""

from memd.memory.store.postgres.postgres_store import PostgresStore

__all__ = ["PostgresStore"]
