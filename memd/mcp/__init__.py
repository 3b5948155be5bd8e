"""The Model Context Protocol (extra `mcp`): one user's memory as tools and a resource, over stdio or HTTP."""
