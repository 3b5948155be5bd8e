"""Binding: the user whose memory a call reads or writes. Set by the process or the token, never by the model."""

from __future__ import annotations

from typing import Literal, Protocol

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier

from memd.errors import ConfigError, Rejected
from memd.events import Event, logger
from memd.http.keyring import Keyring, Token

Need = Literal["read", "write"]
"""The access that a call needs, which is also the scope of its token."""


class Binding(Protocol):
    """Knows the user of the current call."""

    def user(self, need: Need) -> str:
        """The user's id. Raises Rejected when the caller must not do this."""
        ...


class ByProcess:
    """Every call is for the user that the process was started for."""

    def __init__(self, user_id: str) -> None:
        self._user_id = user_id

    def user(self, need: Need) -> str:
        """The user."""
        return self._user_id


class ByToken:
    """Every call is for the one user that its token names. Tokens for several users are not accepted."""

    def user(self, need: Need) -> str:
        """The token's user. Raises Rejected when the token lacks the scope."""
        token = get_access_token()
        if token is None or token.subject is None:  # the middleware refuses calls without a token
            raise Rejected("E_TOKEN", "a token is required")
        if need not in token.scopes:
            raise Rejected("E_SCOPE", f'this token lacks the scope "{need}"', "scope")
        return token.subject


class Verifier(TokenVerifier):
    """Looks tokens up in `http.tokens`, for the SDK's middleware."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    async def verify_token(self, token: str) -> AccessToken | None:
        """The token's user and scopes; None when it is not valid or does not name exactly one user."""
        try:
            found = self._keyring.find(token)
        except ConfigError as error:  # no token is valid until the file is repaired
            logger(part="mcp").error(Event.TOKENS_UNREADABLE, error=str(error))
            return None
        user = only_user(found) if found else None
        if found is None or user is None:
            return None
        return AccessToken(token=token, client_id=found.id, scopes=sorted(found.scopes), subject=user)


def only_user(token: Token) -> str | None:
    """The one user that a token names; None when it names a prefix, all users, or several."""
    users = token.users
    return next(iter(users.listed)) if len(users.listed) == 1 and not users.prefix and not users.every else None
