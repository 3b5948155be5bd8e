"""The code that RQ runs. A stored job names it by import paths of the top-level package `workers`: a wire format."""
