"""Recall: reading the memory, for a prompt (`inject`) and for people (`view`)."""
