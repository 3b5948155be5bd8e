"""The demo: conversations written for it, and the run that turns them into memory."""
