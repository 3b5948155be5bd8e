"""The short-term half: one conversation within a token budget, whose cuts hand everything to the long-term memory."""
