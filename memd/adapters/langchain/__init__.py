"""LangChain and LangGraph: a middleware that gives an agent its user's memory and remembers for it."""

from memd.adapters.langchain.middleware import MemdMiddleware

__all__ = ["MemdMiddleware"]
