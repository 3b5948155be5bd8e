"""`memd serve`: memd's verbs over HTTP, for apps in any language. Needs the extra `http`; nothing else imports it.

`routes` is the table of all operations: the server routes by it, and `openapi` documents it. `operation` takes one
request through its steps (authenticate, parse, authorize, run, respond). `memory`, `pushes` and `monitoring` run the
operations. `listener` and `connections` are shared with `memd mcp --http`.
"""
