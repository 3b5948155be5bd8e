"""What a page and an action are, and what they get: one request of a browser that is logged in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

from starlette.responses import Response

from memd.context import DEFAULT_AGENT
from memd.http.console.logins import Login
from memd.http.keyring import Scope
from memd.http.problems import Problem, not_found
from memd.http.service import Service
from memd.identifiers import check_identifier

Language = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows: a template and its data."""

    template: str
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a browser that is logged in. `query`, `form`: every field with its values, none empty."""

    service: Service
    login: Login
    path: str
    query: Mapping[str, Sequence[str]]
    form: Mapping[str, Sequence[str]]

    def may(self, scope: Scope) -> bool:
        """Whether the login's token has the scope."""
        return scope in self.login.token.scopes

    def require(self, scope: Scope) -> None:
        """Raises Problem unless the login's token has the scope."""
        if not self.may(scope):
            raise Problem(403, "E_SCOPE", f'this token lacks the scope "{scope}"', field=scope)

    def values(self, name: str) -> Sequence[str]:
        """All values of a field of the form, or else of the address."""
        return self.form.get(name) or self.query.get(name) or ()

    def value(self, name: str, default: str = "") -> str:
        """The last value of a field of the form, or else of the address."""
        found = self.values(name)
        return found[-1] if found else default

    def start(self, name: str = "after") -> int:
        """The place in a list at which the page begins, from a field of the address; 0 for what is no number."""
        text = self.value(name)
        return int(text) if text.isdecimal() and len(text) < 7 else 0

    @property
    def user(self) -> str:
        """The user that the request names. Raises Problem unless the token names them, Rejected."""
        user_id = check_identifier("user_id", self.value("user") or None)
        self.require_user(user_id)
        return user_id

    @property
    def agent(self) -> str:
        """The agent that the request names; empty for the user's own memory. Raises Rejected."""
        agent = self.value("agent", DEFAULT_AGENT)
        return check_identifier("agent_name", agent) if agent else DEFAULT_AGENT

    def require_user(self, user_id: str) -> None:
        """Raises Problem unless the login's token names the user, the same as for what is missing."""
        self.service.authorize_user(self.login.token, user_id)

    @property
    def must_choose(self) -> bool:
        """Whether a list of all users' rows has to wait for the name of one.

        A token that does not name all users would learn from the next page's address how many rows there are.
        """
        return not self.login.token.users.every and not self.value("user")

    def require_everyone(self) -> None:
        """Raises Problem unless the login's token names all users."""
        if not self.login.token.users.every:
            raise not_found()

    def say(self, words: str, **values: object) -> None:
        """Show a sentence on the next page. `words`: in English, a key of the translations; may hold {name}s."""
        self.login.notes.append((words, values))


@dataclass(frozen=True, slots=True)
class Page:
    """A page. `title`: English words, a key of the translations.

    `scopes`: what a token needs besides `console`. `of_user`: it is about one user, whom `?user=` names.
    `everyone`: only for tokens of all users. `menu`: it stands in the menu, or among the tabs of a user. `live`: it
    has values that change by themselves.
    """

    path: str
    title: str
    run: Callable[[Visit], Shown | Response]
    scopes: tuple[Scope, ...] = ()
    of_user: bool = False
    everyone: bool = False
    menu: bool = True
    live: bool = False

    def is_for(self, login: Login) -> bool:
        """Whether the login may open it."""
        token = login.token
        return token.scopes.issuperset(self.scopes) and (token.users.every or not self.everyone)


@dataclass(frozen=True, slots=True)
class Action:
    """A change, by a form. `run` returns the address of the page to show next.

    `scope`: what a token needs besides `console`; None: any token may. `of_user`, `everyone`: as for a page.
    """

    path: str
    run: Callable[[Visit], str]
    scope: Scope | None
    of_user: bool = False
    everyone: bool = False


def address(path: str, **fields: object) -> str:
    """The address of a page with these fields; fields that are empty or None are left out."""
    told = {name: value for name, value in fields.items() if value not in (None, "")}
    return f"{path}?{urlencode(told)}" if told else path
