"""Dead: the letters of what failed for good, by code; the text of one, and retrying or dropping one or many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from memd.errors import Rejected
from memd.http.console.page import Shown, Visit, address
from memd.http.problems import not_found
from memd.inbox.dead import Letter, LetterFilter, LetterPage

ROWS = 50
PATH = "/console/dead"
LETTER = f"{PATH}/letter"


def dead(visit: Visit) -> Shown:
    """The page: letters of one code or of all, of one user or of all that the token names. Never a text."""
    chosen = _filter(visit)
    page = _page(visit, chosen)
    following = address(PATH, code=chosen.code, user=chosen.user_id, after=page.next) if page.next else ""
    data = {
        "letters": page.letters,
        "codes": page.codes,
        "code": chosen.code or "",
        "user": chosen.user_id or "",
        "counted": page.looked_at if page.looked_at < page.total else None,
        "more_href": following,
    }
    return Shown("dead.html", data)


def letter(visit: Visit) -> Shown:
    """The page of one letter with its text."""
    content = visit.service.memd.dead_letter(visit.value("id"))
    if content is None or not _visible(visit)(content.letter.user_id):
        raise not_found()
    return Shown("letter.html", {"letter": content.letter, "messages": content.messages, "raw": content.raw})


def retry(visit: Visit) -> str:
    """Make letters pending again: those chosen, or all of a code, of a user, or of both."""
    letters = _chosen(visit)
    moved = visit.service.memd.retry(letters)
    stay = len(letters) - moved
    if moved or not stay:
        visit.say("1 letter is pending again" if moved == 1 else "{count} letters are pending again", count=moved)
    if stay == 1:
        visit.say("1 letter stays dead: its content would be refused again")
    elif stay:
        visit.say("{count} letters stay dead: their content would be refused again", count=stay)
    return _back(visit)


def drop(visit: Visit) -> str:
    """Delete letters for good: those chosen, or all of a code, of a user, or of both."""
    gone = visit.service.memd.drop(_chosen(visit))
    visit.say("1 letter is deleted" if gone == 1 else "{count} letters are deleted", count=gone)
    return _back(visit)


def _page(visit: Visit, chosen: LetterFilter) -> LetterPage:
    """A page of letters. How many letters others have must not show for a token that names some users only."""
    if visit.login.token.users.every:
        return visit.service.memd.dead_page(chosen, after=visit.value("after"), limit=ROWS)
    visible = _visible(visit)
    found = [one for one in visit.service.memd.dead(LetterFilter(user_id=chosen.user_id)) if visible(one.user_id)][::-1]
    rows = [letter for letter in found if chosen.holds(letter)]
    end = visit.start() + ROWS
    codes = dict(Counter(letter.code for letter in found).most_common())
    return LetterPage(tuple(rows[end - ROWS : end]), str(end) if end < len(rows) else "", len(found), codes, len(found))


def _chosen(visit: Visit) -> list[Letter]:
    """The letters that a form names. Raises Rejected when it names none."""
    if ids := tuple(visit.values("letter")):
        chosen = LetterFilter(ids=ids)
    elif visit.value("every"):
        chosen = _filter(visit)
    else:
        raise Rejected("E_LETTERS", "choose at least one letter", "letter")
    visible = _visible(visit)
    return [letter for letter in visit.service.memd.dead(chosen) if visible(letter.user_id)]


def _filter(visit: Visit) -> LetterFilter:
    return LetterFilter(code=visit.value("code") or None, user_id=visit.user if visit.value("user") else None)


def _visible(visit: Visit) -> Callable[[str | None], bool]:
    """Whether the token names the user of a letter; a raw push, whose user nobody has read, needs one for all users."""
    users = visit.login.token.users
    return lambda user_id: users.every if user_id is None else user_id in users


def _back(visit: Visit) -> str:
    return address(PATH, code=visit.value("code"), user=visit.value("user"))
