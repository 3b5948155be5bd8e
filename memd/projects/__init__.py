"""Projects: what apps and people do with a memory that several users share. The rules are in `memory.projects`."""
