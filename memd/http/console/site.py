"""Serves the console: who may come in, the pages, the actions, and what every answer says to the browser."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memd.errors import MemdError
from memd.events import Event, logger
from memd.http import problems
from memd.http.console import links, rendering
from memd.http.console.browser import HOME, BrowserRequest, fields_of
from memd.http.console.logins import LASTS_S, Login, Logins
from memd.http.console.page import Page, Shown, Visit, address
from memd.http.console.pages import ACTIONS, PAGES
from memd.http.console.translations import LANGUAGES, preferred
from memd.http.keyring import ANYBODY, Token
from memd.http.problems import Problem, problem_of
from memd.http.request_body import FORM, ClientGone, Place, read_body
from memd.http.service import Service

MAX_FORM_BYTES, MAX_LOGIN_BYTES = 256 * 1024, 16 * 1024
"""Of a form, and of the one that everybody may send."""

MAX_NEXT_CHARS = 2_000
"""Of the address to which a login leads; a longer one is forgotten."""

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with no-referrer, forms would send no origin
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Of every answer. No script and no style stands in a page, nothing comes from elsewhere, and no page may frame it."""


def routes(service: Service) -> list[Route]:
    """The routes of the console."""
    site = Site(service)
    paths = {page.path for page in PAGES} | {action.path for action in ACTIONS}
    own = {"/", links.LOGIN, links.ENTER, f"{HOME}/logout", f"{HOME}/language"}
    return [
        Route(f"{HOME}/static/{{name}}", Assets()),
        *(Route(path, Door(site, path)) for path in sorted(paths | own)),
        Route(f"{HOME}/{{rest:path}}", Door(site, "")),
    ]


class Assets:
    """Serves the style sheet and the script, to anybody: they are the same everywhere."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        name = scope["path_params"]["name"]
        kind = rendering.ASSETS.get(name)
        if kind is None or scope["method"] not in ("GET", "HEAD"):
            response = problems.not_found().response()
            response.headers.update(HEADERS)
        else:
            headers = {**HEADERS, "cache-control": "public, max-age=31536000, immutable"}
            response = Response(rendering.asset(name), headers=headers, media_type=kind)
        await response(scope, receive, send)


class Door:
    """One path of the console, as an ASGI application."""

    def __init__(self, site: Site, path: str) -> None:
        self._site = site
        self._path = path or f"{HOME}/…"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        began = time.perf_counter()
        try:
            response = await self._site.respond(scope, receive)
        except ClientGone:
            return
        self._site.service.served.count(self._path, response.status_code, time.perf_counter() - began)
        await response(scope, receive, send)


class Site:
    """All pages of the console."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.logins = Logins()
        self._pages = {page.path: page for page in PAGES}
        self._actions = {action.path: action for action in ACTIONS}
        self._timeout_s = service.settings.http.request_timeout_s
        self._cookie = f"memd_console_{service.settings.http.port}"  # browsers send cookies to all ports of a host

    async def respond(self, scope: Scope, receive: Receive) -> Response:
        """Respond to one request, whatever goes wrong. Raises ClientGone."""
        request = BrowserRequest(scope)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._answer(request, receive)
        except Problem as problem:
            return self._refused(request, problem)
        except MemdError as error:
            return self._refused(request, problem_of(error))
        except TimeoutError:
            detail = f"not done within {self._timeout_s:g} s; try again"
            return self._refused(request, problems.unavailable("E_TIMEOUT", detail))
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  (a bug of ours: the log gets its place, the browser no details)
            logger(part="http").error(Event.HTTP_FAILED, route=request.path, exc_info=error)
            return self._refused(request, problems.internal())

    async def _answer(self, request: BrowserRequest, receive: Receive) -> Response:
        if request.method not in ("GET", "HEAD", "POST"):
            raise Problem(405, "E_METHOD", "the methods of this path are GET, HEAD and POST")
        if request.path == "/":
            return _redirect(HOME)
        if request.path == links.ENTER:
            return await self._enter(request)
        if request.method == "POST" and not request.is_from_here:
            raise Problem(403, "E_ORIGIN", "the form was sent by another site, or a proxy changed its Host")
        if request.path == links.LOGIN:
            return await self._log_in(request, receive)
        login = self._login(request)
        if login is None:
            return self._to_login(request)
        if request.method == "POST":
            form = await self._form(request, receive, MAX_FORM_BYTES)
            self._require_csrf(login, form)
            return await self._act(request, login, form)
        return await self._show(request, login)

    async def _show(self, request: BrowserRequest, login: Login) -> Response:
        page = self._pages.get(request.path)
        if page is None:
            raise problems.not_found()
        if page.everyone and not login.token.users.every and page.path == HOME:
            return _redirect(f"{HOME}/users")
        visit = Visit(self.service, login, request.path, request.query, {})
        _require(visit, page.scopes, of_user=page.of_user, everyone=page.everyone)

        def work() -> Response:
            shown = page.run(visit)
            if isinstance(shown, Response):
                for name, value in HEADERS.items():
                    shown.headers.setdefault(name, value)
                return shown
            notes = login.notes[:] if request.method == "GET" and not request.by_itself else []
            del login.notes[: len(notes)]
            return self._page(request, login, shown, page=page, notes=notes)

        return await self.service.run(self.service.pages, work)

    async def _act(self, request: BrowserRequest, login: Login, form: Mapping[str, Sequence[str]]) -> Response:
        if request.path == f"{HOME}/logout":
            self.logins.end(self._secret(request))
            return _redirect(links.LOGIN)
        if request.path == f"{HOME}/language":
            login.language = form.get("to", [""])[-1] if form.get("to", [""])[-1] in LANGUAGES else ""
            return _redirect(self._own_address(form.get("back", [""])[-1]))
        action = self._actions.get(request.path)
        if action is None:
            raise problems.not_found()
        visit = Visit(self.service, login, request.path, request.query, form)
        _require(visit, (action.scope,) if action.scope else (), of_user=action.of_user, everyone=action.everyone)
        return _redirect(await self.service.run(self.service.pages, lambda: action.run(visit)))

    async def _enter(self, request: BrowserRequest) -> Response:
        """Turn a one-time link into a login."""
        key = (request.query.get("key") or [""])[-1]
        data_dir = self.service.settings.data_dir
        if request.method != "GET" or not await self.service.run(self.service.pages, lambda: links.use(data_dir, key)):
            return self._login_page(request, "This link has been used, or its five minutes are over.", 401)
        # A page and no redirect: the browser sends a strict cookie only with what a page of ours asks for.
        response = self._page(request, None, Shown("enter.html", {"home": HOME}))
        self._let_in(request, response, ANYBODY)
        return response

    async def _log_in(self, request: BrowserRequest, receive: Receive) -> Response:
        """Turn a token into a login."""
        if request.method != "POST":
            return self._login_page(request)
        form = await self._form(request, receive, MAX_LOGIN_BYTES)
        wanted = (form.get("next") or [""])[-1]
        token = self.service.token_of((form.get("token") or [""])[-1].strip())
        if token is None:
            return self._login_page(request, "This is no valid token.", 401, wanted)
        if "console" not in token.scopes:
            return self._login_page(request, "This token lacks the scope console.", 403, wanted)
        response = _redirect(self._own_address(wanted))
        self._let_in(request, response, token)
        return response

    def _login(self, request: BrowserRequest) -> Login | None:
        """The login of a request, whose token still has to be valid."""
        secret = self._secret(request)
        login = self.logins.find(secret, by_itself=request.by_itself)
        if login is None:
            return None
        if not self.service.is_valid(login.token):
            self.logins.end(secret)
            return None
        return login

    def _secret(self, request: BrowserRequest) -> str:
        """The secret of the login that a request has; empty without one."""
        known = (one for one in request.cookies(self._cookie) if self.logins.find(one, by_itself=True))
        return next(known, "")

    async def _form(self, request: BrowserRequest, receive: Receive, most: int) -> Mapping[str, Sequence[str]]:
        """The fields of a form. Raises Problem."""
        timeout_s = self.service.settings.http.read_timeout_s
        with Place(self.service.large_bodies) as place:
            raw = await read_body(request.headers, receive, most, timeout_s, place, FORM)
        return fields_of(raw)

    @staticmethod
    def _require_csrf(login: Login, form: Mapping[str, Sequence[str]]) -> None:
        sent = (form.get("csrf") or [""])[-1]
        if not hmac.compare_digest(sent.encode(), login.csrf.encode()):
            raise Problem(403, "E_CSRF", "the form is not of this login; open the page again")

    def _to_login(self, request: BrowserRequest) -> Response:
        if request.by_itself:
            raise Problem(401, "E_LOGIN", "the login is over")
        if request.method == "POST":
            return _redirect(links.LOGIN)
        target = request.target if request.target != HOME and len(request.target) <= MAX_NEXT_CHARS else ""
        return _redirect(address(links.LOGIN, next=target))

    def _login_page(self, request: BrowserRequest, problem: str = "", status: int = 200, wanted: str = "") -> Response:
        data = {
            "tokens": self.service.has_tokens,
            "problem": problem,
            "next": wanted or (request.query.get("next") or [""])[-1],
        }
        return self._page(request, None, Shown("login.html", data, status))

    def _refused(self, request: BrowserRequest, problem: Problem) -> Response:
        login = self.logins.find(self._secret(request), by_itself=True)
        body: dict[str, Any] = orjson.loads(problem.body)
        data = {
            "status": problem.status,
            "code": problem.code,
            "detail": body["detail"],
            "back": self._own_address(request.referer),
            "nothing_changed": request.method == "POST" and problem.status < 500,
        }
        response = self._page(request, login, Shown("problem.html", data, problem.status))
        for name, value in problem.headers.items():
            response.headers[name] = value
        return response

    def _page(
        self,
        request: BrowserRequest,
        login: Login | None,
        shown: Shown,
        *,
        page: Page | None = None,
        notes: Sequence[tuple[str, Mapping[str, object]]] = (),
    ) -> Response:
        language = (login.language if login else "") or preferred(request.headers.get("accept-language", ""))
        pages = [one for one in PAGES if one.is_for(login)] if login else []
        frame = rendering.frame_of(language, request.path, login=login, pages=pages, notes=notes)
        frame |= {"page": page, "target": request.target}
        data = rendering.render(shown.template, shown.data, frame)
        return Response(data, shown.status, HEADERS, "text/html; charset=utf-8")

    def _let_in(self, request: BrowserRequest, response: Response, token: Token) -> None:
        """Begin a login, which takes the place of the one that the browser had."""
        self.logins.end(self._secret(request))
        response.set_cookie(
            self._cookie,
            self.logins.begin(token),
            max_age=int(LASTS_S),
            path=HOME,
            secure=request.origin.startswith("https:"),
            httponly=True,
            samesite="strict",
        )

    def _own_address(self, text: str) -> str:
        """The address of a page of the console; its first page for any other."""
        is_plain = text.isascii() and text.isprintable() and " " not in text
        return text if is_plain and text.partition("?")[0] in self._pages else HOME


def _require(visit: Visit, scopes: Sequence[Any], *, of_user: bool, everyone: bool) -> None:
    for scope in scopes:
        visit.require(scope)
    if everyone:
        visit.require_everyone()
    if of_user:
        visit.require_user(visit.user)


def _redirect(to: str) -> Response:
    return Response(None, 303, {**HEADERS, "location": to})
