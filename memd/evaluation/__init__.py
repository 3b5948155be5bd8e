"""Evaluation: labelled conversations, attacks and questions go through the real parts, in memory, and are counted."""
