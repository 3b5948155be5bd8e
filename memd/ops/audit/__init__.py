"""Audit: finds content that should not be in a memory, by rules. It never writes."""

from memd.ops.audit.rules import RULES, Finding, audit, audit_said
from memd.ops.audit.verb import Audited, Report, inspect

__all__ = ["RULES", "Audited", "Finding", "Report", "audit", "audit_said", "inspect"]
