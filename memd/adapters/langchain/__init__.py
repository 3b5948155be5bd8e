"""LangChain and LangGraph: a middleware that gives an agent its user's memory and remembers for it, tools, a store."""

from memd.adapters.langchain.middleware import MemdMiddleware
from memd.adapters.langchain.store import MemdStore
from memd.adapters.langchain.tools import memory_tools

__all__ = ["MemdMiddleware", "MemdStore", "memory_tools"]
