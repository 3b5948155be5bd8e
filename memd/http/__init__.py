"""`memd serve`: memd's verbs over HTTP, for apps in any language. Needs the extra `http`; nothing else loads it.

`serve` listens, `connections` keeps slow clients off, `guard` looks at the Host, `endpoint` is the way of one request
(token, input, whose, work, answer), `routes` is the table of all of them, from which `openapi` is made.
"""
