"""Audit: what in a memory should not be there, by rule. Reads, never writes."""

from memd.ops.audit.rules import RULES, Finding, audit
from memd.ops.audit.verb import Audited, Report, inspect

__all__ = ["RULES", "Audited", "Finding", "Report", "audit", "inspect"]
