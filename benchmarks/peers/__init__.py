"""The alternatives that a user could pick, each set up as its documentation says."""
