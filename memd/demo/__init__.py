"""The demo: the shipped conversations, and the run that turns them into memory."""
