"""What the extractor reads of wishes to forget, and what may be made of the words behind them."""

from __future__ import annotations

import pytest

from memd.context import Message, identify
from memd.memory.said.may_keep import may_keep
from memd.memory.said.wishes import behind_wishes, wish_of

TURN = "My wife has cancer. Please forget that. I earn 90k at Siemens."


def asking(*texts: str, name: str | None = None) -> list[str]:
    """The turns that the extractor reads although they prove nothing."""
    said = identify("t", [Message("user", text, id=f"m{n}", name=name) for n, text in enumerate(texts)])
    kept = may_keep(said)
    return [message.content for message in said if message.identity in kept.asking]


def test_a_turn_that_asks_to_forget_what_it_says_is_read() -> None:
    assert asking(TURN) == [TURN]


@pytest.mark.parametrize(
    "texts",
    [(TURN, "That was off the record."), ("Incognito mode on.", TURN), (TURN, "Forget what I just said.")],
)
def test_nobody_reads_what_is_off_the_record(texts: tuple[str, ...]) -> None:
    """Whatever it asks by itself, and whether it is said before or afterwards."""
    assert asking(*texts) == []


def test_another_speaker_takes_their_own_turn_back() -> None:
    assert asking(TURN, name="Anna") == []


@pytest.mark.parametrize(
    ("text", "behind"),
    [
        (TURN, " I earn 90k at Siemens."),
        ("We split up. Forget that please. what I do want kept: I live in Leeds.", "I live in Leeds."),
        ("Please forget that, i.e. her cancer and the Truvada.", ""),
        ("Can you forget that? The HIV thing, I mean.", ""),
        ("Please forget that. And the affair with Anna.", ""),
        ("Please don't remember what I said about\nmy wife's cancer and\nthe drinking.", ""),
    ],
)
def test_what_may_name_more_of_it_is_not_behind_a_wish(text: str, behind: str) -> None:
    assert behind_wishes(text) == behind


@pytest.mark.parametrize("text", ["请忘记这件事。", "请把这件事忘掉。", "その話は忘れて。", "それは忘れて"])
def test_a_wish_that_only_points_names_nothing(text: str) -> None:
    """Not a character of its verb, which a journalist (记者) has too."""
    wish = wish_of(text)
    assert wish is not None
    assert not any(matter.held_by("用户是一名记者，戒掉了烟，そば が好き") for matter in wish.matters)


@pytest.mark.parametrize("text", ["我之前说远程就是摸鱼的话收回，效率高", "I take back what I said of Rust, I like it"])
def test_a_view_taken_back_is_no_wish_to_forget(text: str) -> None:
    """The new one is a fact, and takes the place of the old one."""
    assert wish_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "My boss drinks. Don't remember this.",
        "My boss drinks. Don't note that down, I just had to tell someone.",
        "我妈和我爸最近闹得厉害。这话你别记啊，我就跟你倒倒苦水",
    ],
)
def test_a_wish_in_a_later_sentence_is_about_the_ones_before(text: str) -> None:
    """Also where it opens its sentence, and where more is said behind it that tells nothing."""
    wish = wish_of(text)
    assert wish is not None
    assert (wish.reach, wish.rest) == ("turn", 0)


@pytest.mark.parametrize(
    ("text", "meant", "other"),
    [
        ("阿康跟我借钱那事,忘了吧,别留着。", "阿康跟用户借钱，借了两万", "室友阿康搬走后用户一个人付房租"),
        ("下面这句别记,不用存:听说公司要裁员。", "", "用户的爸爸开面馆"),
    ],
)
def test_a_wish_takes_only_what_it_names(text: str, meant: str, other: str) -> None:
    """Not all that tells of somebody whom it names, nor what shares a character with a word that points."""
    wish = wish_of(text)
    assert wish is not None
    assert [any(matter.held_by(fact) for matter in wish.matters) for fact in (meant, other)] == [bool(meant), False]
