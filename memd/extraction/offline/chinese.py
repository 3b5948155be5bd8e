"""Reads one Chinese sentence: checks that it is plain, splits it into clauses, and applies the rules to each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memd.extraction.offline.rules_zh import ENDINGS, KIN, RULES
from memd.extraction.offline.sentences import MASK
from memd.extraction.offline.statements import MAX_VALUE_CHARS, Statement, statement_by
from memd.push.prefilter import Prefilter

HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")

# A question appended to a statement: 我对花生过敏，能吃什么零食？
_TIED_QUESTION = re.compile(
    r"[，,](?:所以|那|请问)?(?:有什么|有没有|能不能|可以|能|怎么|什么|哪|你能|我能|应该|该|要不要|推荐)[^，,。！!？?]*[？?]\s*$"
)
# Not a plain statement: a question, condition, doubt, or reported speech.
_EXCLUDED = re.compile(
    r"[？?]\s*$|吗[。！!~\s]*$|呢[。！!~\s]*$|如果|要是|假如|假设|倘若|比如|例如|可能|也许|大概|好像|似乎|万一|会不会|是不是|能不能"
    r"|要不要|可不可以|有没有|怎么|为什么|什么|哪|据说|听说|的话|想象|说道|他说|她说|他们说|开玩笑"
)
_NOT_NOW = re.compile(r"以前|之前|曾经|过去(?!一)|原来|本来|当时|小时候|那时|今天|明天|今晚|待会|等会|一会儿")
_LEAD = re.compile(
    r"(?:(?:你好|您好|大家好|嗨|哈喽|对了|顺便说一下|顺便说一句|顺便|另外|还有|其实|不对|不是的|错了|你?搞错了|你?记错了|你?说错了|更正一下|更正"
    r"|纠正一下|抱歉|不好意思|对不起|嗯+|好的|好|是的|那个|谢谢|多谢|说一下|补充一下|补充|忘了说|而且|但是|但|不过|所以|然后|顺便提一下"
    r"|告诉你|跟你说|介绍一下|自我介绍一下|请记住|记住|提醒一下|啊|哦|哎|今年(?=我)|现在(?=我)|最近(?=我)|目前(?=我)|平时(?=我)"
    r"|上个?月|上周|去年|昨天|工作上|生活中)[\s，,、：:！!~]*)*"
)
_CORRECTING = re.compile(r"不对|不是的|错了|更正|纠正|搞错|记错|说错|其实|抱歉|不好意思|对不起")
_CLAUSE = re.compile(r"[，,](?!\s*(?:名字)?叫)\s*")
_OTHERS = re.compile(rf"我(?:们|家|的|{KIN})")
"""A clause about somebody else: later clauses without their own subject are not about the user."""

_OPENINGS = (
    "请", "以后", "今后", "从现在", "回答", "回复", "叫我", "可以叫我", "你可以叫我", "大家都叫我", "不要", "别",
)  # fmt: skip
_ADVERBS = re.compile(
    r"(?:现在|目前|最近|已经|一直|平时|一般|通常|主要|刚刚|刚|都|也|还|就|真的|很|非常|特别|超级|超|挺|从小|每天|日常|其实|上个?月|上周|去年|今年初|本来就)+"
)
_TAIL = re.compile(r"(?:[了啦哦喔呀啊吧呢哈嘛哟]|谢谢|哈哈|的说)+$")
_EDGE = re.compile(r"^[^\w《【(（]+|[^\w》】)）+#%°]+$")
_VAGUE = re.compile(r"这|那|它|他|她|你|您|第.[个种条]|刚才|上面|下面|前面|后面|一下$|其他|别的|什么|所有|大家")
_MEANT = re.compile(
    r"(?:(?:我(?:说|指)的|我的意思|我(?:想)?说|应该)是|是)([^，,。！!]{1,40})(?:[，,](?:而)?(?:不是|并非)([^，,。！!]{1,40}))?"
)
_NOT_BUT = re.compile(r"(?:我(?:说|指)的)?不是([^，,。！!]{1,40})[，,](?:而|应该)?是([^，,。！!]{1,40})")
_SUBJECT = re.compile(r"^我(?:\(\?:们\)|们)?\??")
"""The subject at the beginning of a rule. Adverbs may follow it in a sentence, so it is left out of the literals."""

_STATES: Prefilter[None] = Prefilter(
    [
        (_SUBJECT.sub("", pattern.pattern), None)
        for pattern in (_MEANT, _NOT_BUT, *(ended for _, ended in ENDINGS), *(rule.pattern for rule in RULES))
    ]
)
"""Prefilter: every sentence with a statement contains one of these literals."""

_ENDS_NOT = re.compile(r"[，,](?:而)?不(?:是)?(?:住?在|叫)?([^，,。！!]{1,30})$")


def may_state(sentence: str) -> bool:
    """Whether a sentence could hold a statement: it has a literal that one of the rules requires."""
    return _STATES.could_match(_STATES.literals_in(_normal(sentence)))


def read(sentence: str, *, corrects: bool = False) -> list[Statement]:
    """The plain statements of one sentence. `corrects`: the previous sentence was a bare 不对."""
    text = _TIED_QUESTION.sub("", _normal(sentence))
    if _EXCLUDED.search(text) or MASK in text:
        return []
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    corrects = corrects or _CORRECTING.search(text[:start]) is not None
    body = _EDGE.sub("", text[start:])
    return list(_corrections(body, corrects)) or list(_statements(body, corrects))


def _normal(sentence: str) -> str:
    return (" " if _LATIN.search(sentence) else "").join(sentence.split())


def is_bare_no(sentence: str) -> bool:
    """Whether the whole sentence is a 不对 that the next sentence explains."""
    lead = _LEAD.match(sentence)
    return lead is not None and not _EDGE.sub("", sentence[lead.end() :]) and _CORRECTING.search(sentence) is not None


def _statements(body: str, corrects: bool) -> Iterator[Statement]:
    wrong = _ENDS_NOT.search(body)
    wrong_value = _EDGE.sub("", wrong[1]) if wrong and corrects else ""
    elided = False
    for raw in _CLAUSE.split(body):
        lead = _LEAD.match(raw)
        clause = raw[lead.end() :] if lead else raw
        subject = clause.startswith("我") or elided
        if (subject or clause.startswith(_OPENINGS)) and not _NOT_NOW.search(clause):
            for statement in _read_clause(clause):
                subject = subject and not statement.person
                yield replace(statement, corrects=corrects, wrong=wrong_value)
        elided = subject and _OTHERS.match(clause) is None


def _read_clause(clause: str) -> Iterator[Statement]:
    plain = _plain(clause)
    for ended, pattern in ENDINGS:
        if (match := pattern.fullmatch(clause)) and (value := _value(match[1])):
            yield Statement("over", ended, "", value=value)
    for text in dict.fromkeys((plain, clause)):
        for rule in RULES:
            if match := rule.pattern.fullmatch(text):
                raw = match[2] if rule.kin else match[1]
                statement = statement_by(rule, _value(raw) if raw else "吃素", match[1] if rule.kin else "")
                if statement:
                    yield statement
                    return


def _plain(clause: str) -> str:
    """The clause without adverbs after its subject and without final particles."""
    clause = _TAIL.sub("", clause)
    subject = "我们" if clause.startswith("我们") else "我" if clause.startswith("我") else ""
    rest = clause[len(subject) :].lstrip()
    adverbs = _ADVERBS.match(rest)
    return subject + (rest[adverbs.end() :] if adverbs else rest)


def _value(raw: str) -> str:
    """The value without particles; "" when it is vague or too long."""
    value = _EDGE.sub("", _TAIL.sub("", _EDGE.sub("", raw)))
    if not value or len(value) > MAX_VALUE_CHARS // 2 or _VAGUE.match(value) or "我们" in value:
        return ""
    return value.replace("我", "自己")


def _corrections(body: str, corrects: bool) -> Iterator[Statement]:
    """Corrections: 我说的是…，不是… / 不是…，是…."""
    if match := _NOT_BUT.fullmatch(body):
        wrong, right = _value(match[1]), _value(match[2])
    elif match := _MEANT.fullmatch(body):
        right, wrong = _value(match[1]), _value(match[2] or "")
    else:
        return
    firm = re.search(r"我(?:说|指)的|我的意思|我(?:想)?说", body) is not None
    if right and (wrong or firm):
        content = f"用户的意思是{right}，不是{wrong}。" if wrong else f"用户的意思是{right}。"
        yield Statement(
            "correction", content if firm or corrects else "", "correction", value=right, corrects=True, wrong=wrong
        )
