"""The console: pages on which people look at memories and at the inbox, and act on them. Part of `memd serve`.

`pages` is the table of all pages and actions, `site` serves them, `logins` and `links` decide who may come in.
"""
