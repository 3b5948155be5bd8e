"""Operations on dead letters. Who asks sees the letters of the users that the token names, and nothing of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from memd.client import Memd
from memd.errors import Rejected
from memd.http.admin_fields import DeadChoice, DeadQuery
from memd.http.keyring import Users
from memd.http.operation import HttpRequest, json_response
from memd.http.paging import page
from memd.http.problems import not_found
from memd.inbox.dead import Content, Letter, LetterFilter, LetterPage


async def dead(request: HttpRequest) -> Response:
    """A page of letters, the newest first. Never a text."""
    query: DeadQuery = request.query
    memd, users = request.service.memd, request.token.users
    chosen = LetterFilter(code=query.code, user_id=query.user_id)
    pool = request.service.inbox if users.every else request.service.long  # it looks at all letters
    found = await request.service.run(
        pool, lambda: letters_page(memd, users, chosen, after=query.after, limit=query.limit)
    )
    return json_response({**asdict(found), "letters": list(map(_row, found.letters))})


async def letter(request: HttpRequest) -> Response:
    """One letter; its messages only with the scope `said`."""
    memd, users, letter_id = request.service.memd, request.token.users, request.path["letter_id"]
    content = await request.service.run(request.service.inbox, lambda: letter_content(memd, users, letter_id))
    if content is None:
        raise not_found()
    row = _row(content.letter)
    said = {"messages": content.messages, "raw": content.raw} if "said" in request.token.scopes else {}
    return json_response({**row, **said})


async def retry(request: HttpRequest) -> Response:
    """Make letters pending again; those stay whose content would be refused again."""

    def work() -> dict[str, Any]:
        letters = _chosen(request)
        moved = request.service.memd.retry(letters)
        return {"retried": moved, "stay": len(letters) - moved}

    return json_response(await request.service.run(request.service.long, work))


async def drop(request: HttpRequest) -> Response:
    """Delete letters for good."""
    drop_letters = request.service.memd.drop
    gone = await request.service.run(request.service.long, lambda: drop_letters(_chosen(request)))
    return json_response({"dropped": gone})


def letters_page(memd: Memd, users: Users, chosen: LetterFilter, *, after: str, limit: int) -> LetterPage:
    """A page of letters. How many letters others have must not show for a token that names some users only."""
    if users.every:
        return memd.dead_page(chosen, after=after, limit=limit)
    seen = visible(users)
    found = [one for one in memd.dead(LetterFilter(user_id=chosen.user_id)) if seen(one.user_id)][::-1]
    rows = [letter for letter in found if chosen.holds(letter)]
    shown, following = page(rows, after, limit)
    codes = dict(Counter(letter.code for letter in found).most_common())
    return LetterPage(tuple(shown), following, len(found), codes, len(found))


def letter_content(memd: Memd, users: Users, letter_id: str) -> Content | None:
    """One letter with its messages; None when it is unknown, or of a user whom the token does not name."""
    content = memd.dead_letter(letter_id)
    return content if content is not None and visible(users)(content.letter.user_id) else None


def letters_of(memd: Memd, users: Users, chosen: LetterFilter) -> Sequence[Letter]:
    """The selected letters of users that the token names."""
    seen = visible(users)
    return [letter for letter in memd.dead(chosen) if seen(letter.user_id)]


def visible(users: Users) -> Callable[[str | None], bool]:
    """Whether a token names the user of a letter; a raw push, whose user nobody has read, needs one for all users."""
    return lambda user_id: users.every if user_id is None else user_id in users


def _chosen(request: HttpRequest) -> Sequence[Letter]:
    body: DeadChoice = request.body
    if not (body.ids or body.code or body.user_id or body.every):
        raise Rejected("E_LETTERS", "name the letters: ids, code, user_id or every", "ids")
    chosen = LetterFilter(tuple(body.ids), body.code, body.user_id)
    return letters_of(request.service.memd, request.token.users, chosen)


def _row(letter: Letter) -> dict[str, Any]:
    row = asdict(letter)
    del row["owner"], row["bucket"]
    return row
