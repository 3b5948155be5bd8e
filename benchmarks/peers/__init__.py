"""The alternatives that a user could choose, each set up as its documentation says."""
