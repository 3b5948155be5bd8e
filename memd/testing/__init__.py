"""For people who build on memd: a real HTTP server that plays the model's endpoint. See `ModelServer`."""

from memd.testing.model_server import ModelServer, Recorded, Reply, facts_from_messages
from memd.testing.replies import Refused

__all__ = ["ModelServer", "Recorded", "Refused", "Reply", "facts_from_messages"]
