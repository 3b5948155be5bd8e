"""A browser without a screen: it logs in to the console of a site, opens pages, and sends their forms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from memd.http.console import links
from support.http_support import Answer, Site, serving

FORM = "application/x-www-form-urlencoded"

Fields = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Seen:
    """A page as it came."""

    answer: Answer

    @property
    def html(self) -> str:
        return self.answer.body.decode()

    @property
    def text(self) -> str:
        """The words of the page, with single spaces."""
        words = _Words()
        words.feed(self.html)
        return " ".join("".join(words.found).split())

    @property
    def links(self) -> list[str]:
        """Where its links lead."""
        return [unescape(found) for found in re.findall(r'<a [^>]*?href="([^"]*)"', self.html)]

    def forms(self, action: str) -> list[dict[str, str]]:
        """The hidden fields of each form that is sent there, also by one of its buttons."""
        forms = re.findall(r"<form [^>]*>.*?</form>", self.html, re.DOTALL)
        return [
            {unescape(name): unescape(value) for name, value in _HIDDEN.findall(form)}
            for form in forms
            if f'action="{action}"' in form
        ]


_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)"')


class _Words(HTMLParser):
    """The text of a page without its head and its drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("b", "bdi", "code", "strong"):
            self.found.append(" ")


class Visitor:
    """A browser that is logged in: with a token, or by a one-time link, which may do everything."""

    def __init__(self, site: Site, token: str = "") -> None:
        self._site = site
        if token:
            answer = self._send("/console/login", {"token": token}, {})
        else:
            link = links.make(site.settings.data_dir, site.settings.http)
            answer = site.ask("GET", link.partition(f":{site.port}")[2], token="")
        assert "set-cookie" in answer.headers, answer
        self._cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}

    def get(self, path: str, status: int = 200, language: str = "en") -> Seen:
        """A page, which must have this status."""
        answer = self._site.ask("GET", path, token="", headers={**self._cookie, "accept-language": language})
        assert answer.status == status, (path, answer.status, Seen(answer).text[-500:])
        return Seen(answer)

    def post(self, path: str, fields: Fields, status: int = 303) -> Seen:
        """Send a form, with the mark of this login; the page after it, or the refusal, which has another status."""
        csrf = re.search(r'name="csrf" value="([^"]+)"', self.get("/console/users").html)
        assert csrf
        answer = self._send(path, {**fields, "csrf": csrf[1]}, self._cookie)
        assert answer.status == status, (path, answer.status, Seen(answer).text[-500:])
        return self.get(answer.headers["location"]) if status == 303 else Seen(answer)

    def _send(self, path: str, fields: Fields, cookie: Mapping[str, str]) -> Answer:
        headers = {**cookie, "content-type": FORM, "origin": f"http://127.0.0.1:{self._site.port}"}
        body = urlencode(fields, doseq=True).encode()
        return self._site.ask("POST", path, body, token="", headers=headers)


@contextmanager
def console(server_url: str | None, **changes: Any) -> Iterator[Site]:
    """A server with tokens and the console."""
    with serving(server_url, locked=True, http__console=True, **changes) as site:
        yield site
