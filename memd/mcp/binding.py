"""Binding: whose memory a call is about. The process or the bearer token says so, never what a model writes."""

from __future__ import annotations

from typing import Literal, Protocol

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier

from memd.errors import ConfigError, Rejected
from memd.events import Event, logger
from memd.http.keyring import Keyring, Token

Need = Literal["read", "write"]
"""What a call does; the scopes of a token have the same names."""


class Binding(Protocol):
    """Says whose memory the call in hand is about."""

    def user(self, need: Need) -> str:
        """The user's id. Raises Rejected when the caller may not do this."""
        ...


class ByProcess:
    """Every caller is the one user that the process was started for."""

    def __init__(self, user_id: str) -> None:
        self._user_id = user_id

    def user(self, need: Need) -> str:
        """The user."""
        return self._user_id


class ByToken:
    """The caller is the user of the token; a token for many users is not one that a model may be given."""

    def user(self, need: Need) -> str:
        """The token's user. Raises Rejected when the token has not this scope."""
        token = get_access_token()
        if token is None or token.subject is None:  # the middleware lets nobody in without
            raise Rejected("E_TOKEN", "a token is required")
        if need not in token.scopes:
            raise Rejected("E_SCOPE", f"this token has not the scope {need}", "scope")
        return token.subject


class Verifier(TokenVerifier):
    """Knows the tokens of `http.tokens`."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token is good for; None: nobody gets in by it."""
        try:
            found = self._keyring.find(token)
        except ConfigError as error:  # nobody gets in until the file is mended
            logger(part="mcp").error(Event.TOKENS_UNREADABLE, error=str(error))
            return None
        user = only_user(found) if found else None
        if found is None or user is None:
            return None
        return AccessToken(token=token, client_id=found.id, scopes=sorted(found.scopes), subject=user)


def only_user(token: Token) -> str | None:
    """The one user whom a token names; None when it names a prefix, all, or not exactly one."""
    users = token.users
    return next(iter(users.listed)) if len(users.listed) == 1 and not users.prefix and not users.every else None
