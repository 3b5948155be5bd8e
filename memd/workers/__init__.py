"""What RQ runs. A stored job names it by the import paths of the top-level package `workers`: a wire format."""
