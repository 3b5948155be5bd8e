"""What RQ runs. These import paths are stored in Redis, so they are a wire format."""
