"""Evaluation: runs labelled conversations, attacks and questions through the real parts, in memory, and counts."""
