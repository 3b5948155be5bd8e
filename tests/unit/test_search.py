"""Search: words, ranking, filters, vectors, and invalid queries."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recall_support import document, fact, reader, write

from memd.config import RecallSettings
from memd.context import Bucket
from memd.errors import ConfigError, EmbedderFailed, Rejected
from memd.evaluation.retrieval import Score, by_group, measure
from memd.evaluation.retrieval_memory import MemdMemory, Memories
from memd.evaluation.retrieval_sets import read
from memd.memory.document import Document
from memd.push.times import iso
from memd.recall.memories import alone
from memd.recall.ranking import Indexed
from memd.recall.search import WEIGHTS, Found, check, rank
from memd.recall.words import roots, stem

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def ids(found: list[Found]) -> list[str]:
    return [one.fact["id"] for one in found]


def found_in(memory: Document, query: str, **wanted: Any) -> list[Found]:
    """The search without files."""
    checked = check(query, 500, **{"categories": (), "since": None, "until": None} | wanted)
    return rank(Indexed(alone(memory, NOW)), checked)


# --- words ---------------------------------------------------------------------------------------------------------


def test_words_without_their_endings_and_pairs_of_characters() -> None:
    """English loses inflection and grammar, Chinese becomes pairs of characters, "C++" keeps its signs."""
    assert roots("Does she like teas?") == ["lik", "tea"]
    assert {stem(word) for word in ("like", "likes", "liked", "liking")} == {"lik"}
    assert {"绿", "绿茶", "茶"} <= set(roots("我喜欢喝绿茶。"))
    assert "的" not in roots("他的茶")
    assert {"c++", "c#"} <= set(roots("C++ and C#"))
    assert roots("ＰＯＲＴＯ") == roots("Porto")
    assert roots("Málaga") == roots("malaga")


def test_a_query_of_grammar_alone_is_still_a_query() -> None:
    """Function words count when there are no others."""
    assert "who" in roots("Who is it?")
    assert "谁" in roots("谁？")


@given(st.text(max_size=300))
def test_any_text_has_terms_without_complaint(text: str) -> None:
    """Any text has terms, surrogates and any script included."""
    assert all(roots(text))


# --- ranking -------------------------------------------------------------------------------------------------------


def test_the_score_is_the_sum_of_its_factors() -> None:
    """0.5 similarity + 0.3 confidence + 0.2 scope; the nearer scope counts more."""
    memory = document(
        fact("u", "Likes tea", 0.8),
        fact("p", "Likes tea", 0.8, scope="project", scopeId="p"),
        fact("s", "Likes tea", 0.8, scope="session", scopeId="s"),
    )
    found = found_in(memory, "tea")
    assert ids(found) == ["s", "p", "u"]
    assert [one.scope for one in found] == [1.0, 0.8, 0.6]
    for one in found:
        assert one.score == pytest.approx(0.5 * one.similarity + 0.3 * 0.8 + 0.2 * one.scope)
    assert WEIGHTS == (0.5, 0.3, 0.2)


def test_what_holds_more_and_rarer_words_is_more_similar() -> None:
    """A fact without any of the words is not found."""
    memory = document(
        fact("a", "Drinks green tea in the evening"), fact("b", "Drinks coffee"), fact("c", "Lives in Porto")
    )
    assert ids(found_in(memory, "when does she drink green tea?")) == ["a", "b"]
    assert found_in(memory, "quantum chromodynamics") == []


def test_a_word_that_only_begins_alike_counts_little() -> None:
    """Related words are found, after the word itself."""
    memory = document(fact("a", "Her health insurance is with Medis"), fact("b", "Has an insured parcel on the way"))
    assert {one.fact["id"] for one in found_in(memory, "insurer")} == {"a", "b"}
    best, near = found_in(memory, "insurance")
    assert (best.fact["id"], best.similarity) == ("a", 1.0)
    assert near.similarity < 0.5


@pytest.mark.parametrize(
    ("query", "first"), [("他喜欢喝什么茶？", "zh1"), ("北京", "zh2"), ("茶", "zh1"), ("東京", "zh3")]
)
def test_chinese_is_found_by_one_character_or_more(query: str, first: str) -> None:
    """Without any dictionary."""
    memory = document(fact("zh1", "用户喜欢喝绿茶"), fact("zh2", "用户从北京搬到上海"), fact("zh3", "去過東京"))
    assert ids(found_in(memory, query))[0] == first


@pytest.mark.parametrize("confidence", [(1.0, 0.7), (0.7, 1.0)])
def test_what_was_replaced_never_ranks_above_what_replaced_it(confidence: tuple[float, float]) -> None:
    """Even where only the old fact has the words of the query: the new one matches too."""
    memory = document(
        fact("old", "Lives in Berlin, Germany", confidence[0]),
        fact("other", "Was in Berlin once"),
        fact("new", "Lives in Porto", confidence[1], replaces=["old"]),
        fact("newest", "Lives in Lisbon", 0.7, replaces=["new", "gone"]),
    )
    for query in ("Berlin Germany", "lives", "Porto", "Lisbon Berlin"):
        order = [name for name in ids(found_in(memory, query)) if name != "other"]
        assert order in (["newest", "new", "old"], ["newest", "new"], ["newest"]), query


def test_facts_that_replace_each_other_in_a_ring_are_all_found() -> None:
    """Only a person can write that; it must not hang the search."""
    memory = document(
        fact("a", "tea", replaces=["b"]), fact("b", "tea", replaces=["c"]), fact("c", "tea", replaces=["a", "c"])
    )
    assert sorted(ids(found_in(memory, "tea"))) == ["a", "b", "c"]


def test_a_ring_of_which_only_one_fact_matches_is_searched() -> None:
    """Facts in a ring are equals: none of them inherits what another one matches."""
    ring = (fact("a", "Porto", replaces=["c"]), fact("b", "tea", replaces=["a"]), fact("c", "Porto", replaces=["b"]))
    assert ids(found_in(document(*ring, fact("d", "Porto", replaces=["b"])), "tea")) == ["d", "b"]


ALIKE = [
    ("The rent is 900 euros", "The rent is 1,050 euros now", "how much rent?"),
    ("The dentist is Dr Weber in Mainz", "The dentist is Dr Sahin in Mainz", "who is the dentist?"),
    ("用户住在北京", "用户住在上海", "用户住在哪里？"),
    ("用户每天跑3公里", "用户每天跑5公里", "每天跑几公里？"),
]


@pytest.mark.parametrize(("old", "new", "query"), ALIKE)
def test_of_two_facts_that_differ_in_a_number_or_a_name_the_newer_stands_first(old: str, new: str, query: str) -> None:
    """Whatever their confidence and their place in the file; facts about different persons are left alone."""
    days = {"saidAt": "2026-01-01T00:00:00Z"}, {"saidAt": "2026-05-01T00:00:00Z"}
    memory = document(fact("new", new, 0.7, **days[1]), fact("old", old, 1.0, **days[0]))
    assert ids(found_in(memory, query)) == ["new", "old"]
    ana = {"subject": {"person": "Ana", "relationship": "sister"}}
    memory = document(fact("new", new, 0.7, **days[1], **ana), fact("old", old, 1.0, **days[0]))
    assert ids(found_in(memory, query))[0] == "old"


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("what did she buy", "Bought a bicycle"),
        ("how many children", "Has 3 children"),
        ("the child", "Has 3 children"),
        ("three", "Has 3 children"),
        ("teach", "Taught at a school"),
        ("养了两只猫", "用户有2只猫"),
    ],
)
def test_irregular_forms_and_numbers_in_words_are_found(query: str, content: str) -> None:
    """As their plain forms and their digits are."""
    assert ids(found_in(document(fact("a", content), fact("b", "Lives in Porto")), query)) == ["a"]


def test_a_name_outranks_common_words() -> None:
    """A fact about the person named stands before facts that merely share the other words of the query."""
    ana = {"subject": {"person": "Ana", "relationship": "sister"}}
    others = [fact(f"o{number}", f"Works at the office on day {number}", 1.0) for number in range(6)]
    memory = document(*others, fact("ana", "Is employed by a bakery", 0.7, **ana))
    assert ids(found_in(memory, "where does Ana work, at the office?"))[0] == "ana"
    assert ids(found_in(memory, "which office does my sister work at?"))[0] == "ana"


@pytest.mark.parametrize(
    ("phone", "job", "query"),
    [
        ("Her phone is 555-0133", "Works at a bakery", "Whoever's phone is 555-0133, where do they work?"),
        ("电话是5550133", "在面包店工作", "电话是5550133的人在哪里工作？"),
    ],
)
def test_who_is_only_described_is_found_by_the_description(phone: str, job: str, query: str) -> None:
    """The best fact names the person; the fact about them that has the other words follows it."""
    ana, ben = ({"subject": {"person": name, "relationship": "friend"}} for name in ("Ana", "Ben"))
    memory = document(
        fact("ben", job.replace("面包店", "书店").replace("bakery", "bookshop"), 0.9, **ben),
        fact("me", job.replace("面包店", "医院").replace("bakery", "clinic"), 0.9),
        fact("ana", job, 0.8, **ana),
        fact("phone", phone, 0.8, **ana),
    )
    assert ids(found_in(memory, query))[:2] == ["phone", "ana"]


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("Book me dinner for Friday", "Is seriously allergic to peanuts"),
        ("Please order a birthday cake", "Tom, her son, has coeliac disease"),
        ("Get two tickets for the cable tower tour", "Is afraid of heights"),
        ("帮我订个餐厅", "用户的女儿对芒果过敏"),
        ("周末给孩子准备点零食", "外甥对花生严重过敏"),
    ],
)
def test_a_request_brings_what_limits_it(query: str, content: str) -> None:
    """It shares no word with it; what limits another domain stays away, and a question of knowledge brings nothing."""
    memory = document(
        fact("other", "Sits on the parish council"),
        fact("limit", content, 0.8, category="constraint"),
        fact("c", "懂手语"),
    )
    assert ids(found_in(memory, query))[:1] == ["limit"]
    assert ids(found_in(memory, "Book me a slot for the next meeting")) == []
    assert "limit" not in ids(found_in(memory, "What did we cook on Friday?"))


def test_what_is_over_is_not_found_and_not_shown(data_dir: Path) -> None:
    """From its very last moment on, though no drain has archived it yet."""
    now = datetime.now(UTC)
    ended, ends = (iso(now + timedelta(seconds=seconds)) for seconds in (-1, 3600))
    write(data_dir, document(fact("a", "Tea until noon", validUntil=ended), fact("b", "Tea at five", validUntil=ends)))
    app = reader(data_dir)
    assert ids(app.search("ana", "tea")) == ["b"]
    for block in (app.inject("ana"), app.inject("ana", query="tea")):
        assert "noon" not in block
        assert "five" in block


FACTS = st.lists(
    st.builds(
        lambda text, confidence, replaces, category: fact("", text, confidence, replaces=replaces, category=category),
        st.sampled_from(["tea", "green tea", "绿茶", "coffee and tea", "Porto", ""]),
        st.floats(0, 1),
        st.lists(st.sampled_from(["0", "1", "2", "3", "x", 7]), max_size=2),
        st.sampled_from(["goal", "context", None, 3]),
    ),
    max_size=6,
)


@given(FACTS, st.sampled_from(["tea", "绿茶", "porto tea", "the"]))
def test_any_memory_is_ranked(facts: list[dict[str, Any]], query: str) -> None:
    """Scores fall, factors stay in their bounds, nothing comes twice, and no replaced fact is above its replacement."""
    memory = document(*({**one, "id": str(number)} for number, one in enumerate(facts)))
    found = found_in(memory, query)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len(set(ids(found))) == len(found)
    assert all(0 < one.similarity <= 1 and 0 <= one.confidence <= 1 for one in found)
    place = {name: number for number, name in enumerate(ids(found))}
    for one in found:
        for old in one.fact["replaces"]:
            if old in place and not _replaces(memory, old, one.fact["id"]):
                assert place[one.fact["id"]] < place[old]


def _replaces(memory: Document, new: str, old: str) -> bool:
    """Whether one replaced the other, directly or in several steps."""
    by_id = {one["id"]: one for one in memory["facts"]}
    row, seen = [new], set()
    while row:
        name = row.pop()
        if name in seen:
            continue
        seen.add(name)
        row += [older for older in by_id[name]["replaces"] if older in by_id] if name in by_id else []
        if old in (by_id[name]["replaces"] if name in by_id else ()):
            return True
    return False


def test_a_labelled_set_may_be_an_object_or_lines(tmp_path: Path) -> None:
    """As its docstring says; recall is the share of the evidence, MRR is about the first piece."""
    whole = {
        "documents": ["Likes tea", {"id": "d", "text": "Likes coffee", "group": "b"}, "Likes green tea"],
        "questions": ["green tea?", {"id": "q", "text": "coffee", "group": "b"}, "nothing asked"],
        "evidence": {"0": [0, 2], "q": ["d"]},
    }
    lines = [
        {"document": 7, "text": "Likes milk"},
        {"question": 1, "text": "milk and tea", "evidence": [7, 0]},
    ]
    (tmp_path / "whole.json").write_text(json.dumps(whole))
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    labelled = read([tmp_path / "whole.json", tmp_path / "lines.jsonl"])
    memory = MemdMemory(Memories(labelled), RecallSettings())
    scores = by_group(measure(labelled, memory, 2_000))

    assert {question.id: memory.search(question) for question in labelled.questions} == {
        "0": ["2", "0"],
        "q": ["d"],
        "1": ["7", "0", "2"],
    }
    assert scores["all"].figures() == pytest.approx(
        {"questions": 3, "recall@1": 2 / 3, "recall@5": 1, "recall@10": 1, "recall@20": 1, "MRR": 1, "coverage": 1}
    )


def test_the_labelled_set_is_found() -> None:
    """The search is no worse than the figures in docs/recall.md."""
    labelled = read([ROOT / "evaluation" / "retrieval.jsonl"])
    means = Score(measure(labelled, MemdMemory(Memories(labelled), RecallSettings()), 2_000)).figures()
    assert means["questions"] >= 60
    assert means["MRR"] > 0.78
    assert means["recall@5"] > 0.8


# --- filters -------------------------------------------------------------------------------------------------------


def test_filters_by_category_and_time() -> None:
    """A period excludes its end; a changed fact counts by its change; one without a time is in no period."""
    memory = document(
        fact("jan", "tea", category="goal", createdAt="2026-01-10T00:00:00Z"),
        fact("feb", "tea", createdAt="2026-01-01T00:00:00Z", updatedAt="2026-02-10T00:00:00Z"),
        fact("never", "tea", createdAt="soon"),
    )
    assert ids(found_in(memory, "tea", categories=["goal"])) == ["jan"]
    assert ids(found_in(memory, "tea", since="2026-02-01")) == ["feb"]
    assert ids(found_in(memory, "tea", until="2026-02-10T00:00:00Z")) == ["jan"]
    assert ids(found_in(memory, "tea", since="2026-01-10T01:00:00+01:00", until="2027-01-01")) == ["jan", "feb"]
    assert len(found_in(memory, "tea")) == 3


def test_an_agent_reads_its_own_memory_and_the_users(data_dir: Path) -> None:
    """Each fact says whose it is, another agent's stay where they are, and a setting keeps them apart."""
    write(data_dir, document(fact("u1", "Likes green tea"), fact("u2", "Likes black tea")))
    chef = Bucket("ana", "chef")
    write(data_dir, document(fact("c1", "likes green tea."), fact("c2", "Oolong tea", replaces=["u2"]), bucket=chef))
    write(data_dir, document(fact("o1", "tea for the other one"), bucket=Bucket("ana", "other")))
    app = reader(data_dir)

    assert {one.fact["id"]: one.agent_name for one in app.search("ana", "tea", agent_name="chef")} == {
        "c1": "chef",
        "c2": "chef",
    }
    assert {one.agent_name for one in app.search("ana", "tea")} == {""}
    assert ids(app.search("ana", "black", agent_name="other")) == ["u2"]
    alone_again = reader(data_dir, recall__with_user_memory=False)
    assert ids(alone_again.search("ana", "tea", agent_name="other")) == ["o1"]


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "options", "code"),
    [
        ("", {}, "E_QUERY_EMPTY"),
        (" \n\u3000", {}, "E_QUERY_EMPTY"),
        ("绿" * 100_000, {}, "E_QUERY_LENGTH"),
        (7, {}, "E_QUERY_TYPE"),
        ("tea", {"limit": 0}, "E_LIMIT"),
        ("tea", {"limit": 501}, "E_LIMIT"),
        ("tea", {"limit": True}, "E_LIMIT"),
        ("tea", {"categories": "goal"}, "E_CATEGORIES"),
        ("tea", {"since": "soon"}, "E_SINCE"),
        ("tea", {"until": 7}, "E_UNTIL"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(data_dir: Path, query: Any, options: Any, code: str) -> None:
    """With a code and the limit, never the value."""
    with pytest.raises(Rejected) as refused:
        reader(data_dir).search("ana", query, **options)
    assert refused.value.code == code
    assert "绿" not in str(refused.value)
    assert "soon" not in str(refused.value)


@pytest.mark.parametrize(
    "query",
    ['tea AND "NOT" (OR', "NEAR(tea coffee, 5)", "tea*", "content:tea", '"tea', "tea'; DROP TABLE facts; --", "^tea"],
)
def test_operators_are_text(data_dir: Path, query: str) -> None:
    """What other searches obey is only looked for here."""
    write(data_dir, document(fact("a", "Likes tea"), fact("b", "Lives in Porto")))
    assert ids(reader(data_dir).search("ana", query)) == ["a"]


def test_unknown_users_have_nothing(data_dir: Path) -> None:
    """That is no error, and leaves nothing behind."""
    app = reader(data_dir)
    assert app.search("nobody", "tea") == []
    assert app.search("nobody", "tea", agent_name="chef") == []
    assert app.inject("nobody", query="tea") == ""
    assert not (data_dir / "heat").exists()


# --- vectors -------------------------------------------------------------------------------------------------------


def test_vectors_find_what_words_do_not(data_dir: Path) -> None:
    """Both rankings are fused: what both find is first."""
    write(
        data_dir,
        document(
            fact("a", "Has been vegetarian since school"), fact("b", "Steak knives"), fact("c", "Plays the cello")
        ),
    )
    assert ids(reader(data_dir).search("ana", "Can I suggest a steak?")) == ["b"]
    with_vectors = reader(data_dir, recall__embedder="support.recall_support.one_hot")
    assert ids(with_vectors.search("ana", "Can I suggest a steak?")) == ["b", "a"]
    assert ids(with_vectors.search("ana", "instrument")) == ["c"]


def test_a_vector_adds_to_the_words_and_does_not_outrank_them(data_dir: Path) -> None:
    """The only fact about the subject stands before those that merely lie near it; what is far is no answer."""
    write(
        data_dir,
        document(
            *(fact(f"r{number}", f"Writes Rust number {number}", 0.7 + number / 20) for number in range(5)),
            fact("v", "Is vegetarian", 0.7),
            fact("p", "Has a home in Porto"),
        ),
    )
    found = reader(data_dir, recall__embedder="support.recall_support.one_hot").search("ana", "vegetarian meat")
    assert ids(found) == ["v"]
    assert found[0].similarity == 1.0


@pytest.mark.parametrize("name", ["nowhere.embed", "math.pi", "nodots", "support.recall_support.nothing"])
def test_an_embedder_that_cannot_be_loaded_is_said(data_dir: Path, name: str) -> None:
    """One sentence that names the setting."""
    with pytest.raises(ConfigError, match=r"setting recall\.embedder"):
        reader(data_dir, recall__embedder=name).search("ana", "tea")


def test_the_local_embedder_finds_what_words_do_not(data_dir: Path) -> None:
    """Where its packages are installed, without a network; else the setting and what is missing are named."""
    write(data_dir, document(fact("a", "Her brother is called Tom"), fact("b", "Lives in Porto")))
    app = reader(data_dir, recall__embedder="memd.adapters.wordllama.embed")
    if importlib.util.find_spec("wordllama") and importlib.util.find_spec("tokenizers"):
        assert ids(app.search("ana", "Does she have any siblings?")) == ["a"]
    else:
        with pytest.raises(ConfigError, match=r"setting recall\.embedder"):
            app.search("ana", "Does she have any siblings?")


@pytest.mark.parametrize("name", ["broken", "crooked"])
def test_an_embedder_that_fails_fails_the_search(data_dir: Path, name: str) -> None:
    """Aloud, and without the text that it was asked."""
    write(data_dir, document(fact("a", "Secret"), fact("b", "Secrets")))
    with pytest.raises(EmbedderFailed) as failure:
        reader(data_dir, recall__embedder=f"support.recall_support.{name}").search("ana", "Secret")
    assert "Secret" not in str(failure.value)
    assert reader(data_dir, recall__embedder=f"support.recall_support.{name}").inject(
        "ana"
    )  # without a query nobody asks it


# --- the command ---------------------------------------------------------------------------------------------------
