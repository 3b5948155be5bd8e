"""Transfer: memories out of memd and into it, from memd itself, DeerFlow or mem0."""

from memd.transfer.verb import Imported, ImportedMemory, Transfer

__all__ = ["Imported", "ImportedMemory", "Transfer"]
