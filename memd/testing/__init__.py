"""For people who build on memd: real HTTP servers that play the model's endpoint and the embedder.

See `ModelServer` and `EmbeddingServer`.
"""

from memd.testing.embedding_server import EmbeddingServer
from memd.testing.model_server import ModelServer, Recorded, Reply, facts_from_messages
from memd.testing.replies import Refused

__all__ = ["EmbeddingServer", "ModelServer", "Recorded", "Refused", "Reply", "facts_from_messages"]
