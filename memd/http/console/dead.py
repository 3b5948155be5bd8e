"""Dead: the letters of what failed for good, by code; the text of one, and retrying or dropping one or many."""

from __future__ import annotations

from collections.abc import Sequence

from memd.errors import Rejected
from memd.http.console.page import Shown, Visit, address
from memd.http.dead import letter_content, letters_of, letters_page
from memd.http.problems import not_found
from memd.inbox.dead import Letter, LetterFilter

ROWS = 50
PATH = "/console/dead"
LETTER = f"{PATH}/letter"


def dead(visit: Visit) -> Shown:
    """The page: letters of one code or of all, of one user or of all that the token names. Never a text."""
    chosen = _filter(visit)
    page = letters_page(visit.service.memd, visit.login.token.users, chosen, after=visit.value("after"), limit=ROWS)
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
    content = letter_content(visit.service.memd, visit.login.token.users, visit.value("id"))
    if content is None:
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


def _chosen(visit: Visit) -> Sequence[Letter]:
    """The letters that a form names. Raises Rejected when it names none."""
    if ids := tuple(visit.values("letter")):
        chosen = LetterFilter(ids=ids)
    elif visit.value("every"):
        chosen = _filter(visit)
    else:
        raise Rejected("E_LETTERS", "choose at least one letter", "letter")
    return letters_of(visit.service.memd, visit.login.token.users, chosen)


def _filter(visit: Visit) -> LetterFilter:
    return LetterFilter(code=visit.value("code") or None, user_id=visit.user if visit.value("user") else None)


def _back(visit: Visit) -> str:
    return address(PATH, code=visit.value("code"), user=visit.value("user"))
