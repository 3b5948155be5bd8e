"""A browser's side of the console over plain HTTP: logs in, keeps the cookie, opens pages, sends forms."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from memd.http.console import links
from support.console_visits import FORM
from support.http_support import Answer, Site

LOGIN = links.LOGIN
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')
_ALERT = re.compile(r'role="alert">([^<]*)<')

Fields = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Guest:
    """Somebody with a browser. `cookie`: the header's value; empty when nobody is logged in."""

    site: Site
    cookie: str = ""
    csrf: str = ""

    @property
    def origin(self) -> str:
        """The origin of the site's pages."""
        return f"http://127.0.0.1:{self.site.port}"

    def open(self, path: str, fields: Fields = (), *, method: str = "GET", **headers: str) -> Answer:
        """A page. `headers`: with underscores for dashes."""
        target = f"{path}?{urlencode(fields)}" if fields else path
        return self.site.ask(method, target, token="", headers=self._headers(headers))

    def send(self, path: str, fields: Fields = (), *, raw: bytes | None = None, **headers: str) -> Answer:
        """A form, with the login's own csrf unless the fields have one. A header that is empty is left out."""
        sent = {"csrf": self.csrf, **dict(fields)} if isinstance(fields, Mapping) or not fields else fields
        given = {"content-type": FORM, "origin": self.origin, **self._headers(headers)}
        body = urlencode(sent).encode() if raw is None else raw
        kept = {name: value for name, value in given.items() if value}
        return self.site.ask("POST", path, body, token="", headers={"content-type": "", **kept})

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        own = {"cookie": self.cookie} if self.cookie else {}
        return {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}


def logged_in(site: Site, token: str) -> Guest:
    """A browser that has logged in with a token. Fails unless it is let in."""
    answer = Guest(site).send(LOGIN, {"token": token})
    assert answer.status == 303, text_of(answer)
    return _entered(site, answer)


def by_link(site: Site) -> Guest:
    """A browser that has opened a one-time link."""
    return _entered(site, Guest(site).open(link_of(site)))


def link_of(site: Site) -> str:
    """The path of a new one-time link."""
    made = urlsplit(links.make(site.settings.data_dir, site.settings.http))
    return f"{made.path}?{made.query}"


def text_of(answer: Answer) -> str:
    """The body as text."""
    return answer.body.decode()


def shown(answer: Answer) -> str:
    """What a page shows, without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", " ", text_of(answer)))


def code_of(answer: Answer) -> str:
    """The code of a page of refusal; empty for any other page."""
    found = re.search(r"<code>(E_[A-Z_]+)</code>", text_of(answer))
    return found[1] if found else ""


def alert_of(answer: Answer) -> str:
    """The sentence of a page that refuses something; empty for any other page."""
    found = _ALERT.search(text_of(answer))
    return html.unescape(found[1]) if found else ""


def cookie_of(answer: Answer) -> str:
    """The cookie that an answer sets, as `name=value`; empty when it sets none."""
    return answer.headers.get("set-cookie", "").partition(";")[0]


def _entered(site: Site, answer: Answer) -> Guest:
    cookie = cookie_of(answer)
    assert cookie, answer
    page = Guest(site, cookie).open("/console/users")
    found = _CSRF.search(text_of(page))
    assert found, page
    return Guest(site, cookie, found[1])
