"""What a user would pick instead, each set up as its documentation says."""
