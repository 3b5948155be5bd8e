"""The rules for plain statements in Chinese, with the word lists that accept or refuse a value.

A pattern must match a whole clause, without the adverbs after its subject. Where 我 is optional, an earlier clause may
name the subject; 叫 and 是 require it, as they mean something else without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memd.extraction.offline.statements import Rule, words

KIN = (
    r"(大女儿|小女儿|女儿|大儿子|小儿子|儿子|老婆|妻子|太太|爱人|老公|丈夫|先生|女朋友|男朋友|未婚妻|未婚夫|妈妈|爸爸|母亲|父亲"
    r"|姐姐|妹妹|哥哥|弟弟|奶奶|爷爷|外婆|外公|小猫|小狗|猫咪|狗狗|猫|狗|宝宝|孩子|室友|同事|老板|领导|闺蜜|好朋友|朋友)"
)
_COUNTED = r"((?:一|两|三|四|五|\d{1,2})(?:个|只|条|位)(?:小)?(?:孩子|女儿|儿子|宝宝|姐姐|妹妹|哥哥|弟弟|猫|狗|兔子))"
_ANSWER = r"(?:回答|回复|答复|作答|和我说|跟我说|交流|聊)"
_TONE = r"(简短|简洁|简单|精简|精炼|详细|口语化|正式)"
_HABIT = r"(表情符号|表情|emoji|感叹号|表格|Markdown|markdown|术语|废话|客套话)"

LANGUAGES = words(
    """中文 英文 英语 汉语 普通话 粤语 简体中文 繁体中文 简体 繁体 日语 日文 法语 法文 德语 德文 西班牙语 葡萄牙语 韩语
    韩文 俄语 意大利语 阿拉伯语"""
)
_JOB_ENDS = tuple(
    words(
        """工程师 设计师 老师 教师 医生 大夫 护士 护士长 律师 会计 会计师 程序员 学生 研究生
        博士生 硕士生 大学生 高中生 经理 总监 主管 作家 编剧 记者 编辑 厨师 司机 警察 军人
        翻译 顾问 分析师 研究员 教授 讲师 博士后 摄影师 画家 插画师 演员 音乐人 歌手
        自由职业者 创业者 创始人 店主 老板 销售 店员 药剂师 药师 建筑师 架构师 科学家 运营
        公务员 全职妈妈 全职爸爸 农民 电工 木匠 咖啡师 面包师 理发师 健身教练 教练 飞行员 导游
        图书管理员 兽医 心理咨询师 产品经理 开发 测试 运维 实习生 志愿者"""
    )
)
_NO_NAMES = re.compile(r"[你您他她它了过人车救外啥什做作不这那]|外卖|自己")
_NO_EMPLOYERS = re.compile(r"(?:家|努力|认真|拼命|线上|远程|这|那|哪|一起|外面|忙|加班|准备|做|看|用|想|找|等)")
_NO_HOMES = re.compile(r"(?:一起|这|那|哪|酒店|宾馆|朋友家|民宿|医院)")


def _is_name(value: str) -> bool:
    return re.fullmatch(r"[\u4e00-\u9fff·]{2,6}|[A-Za-z][A-Za-z .'-]{1,30}", value) is not None and not _NO_NAMES.match(
        value
    )


def _is_nickname(value: str) -> bool:
    return re.fullmatch(r"[\u4e00-\u9fff·]{1,6}|[A-Za-z][A-Za-z .'-]{1,30}", value) is not None and not _NO_NAMES.match(
        value
    )


def _is_job(value: str) -> bool:
    return value.endswith(_JOB_ENDS) and len(value) <= 30


def _is_employer(value: str) -> bool:
    return len(value) <= 30 and _NO_EMPLOYERS.match(value) is None


def _is_home(value: str) -> bool:
    return len(value) <= 30 and _NO_HOMES.match(value) is None


def _is_language(value: str) -> bool:
    return value in LANGUAGES


def _single(kind: str, category: str, pattern: str, template: str, accept: Callable[[str], bool] | None = None) -> Rule:
    """A rule for statements that hold for one value at a time."""
    return Rule(kind, re.compile(pattern), template, category, single=True, accept=accept)


def _many(kind: str, category: str, pattern: str, template: str, accept: Callable[[str], bool] | None = None) -> Rule:
    """A rule for statements that hold together with others of their kind."""
    return Rule(kind, re.compile(pattern), template, category, long=True, accept=accept)


def _kin(pattern: str) -> Rule:
    template = "用户的{1}叫{0}。"
    return Rule("kin", re.compile(pattern), template, "identity", accept=_is_nickname, kin=True)


RULES = (
    _single("name", "identity", r"我(?:的名字)?(?:叫做|叫|是叫)(.+)", "用户名叫{0}。", _is_name),
    _single("name", "identity", r"我的?(?:名字|全名|真名)是(.+)", "用户名叫{0}。", _is_name),
    _single(
        "nickname",
        "identity",
        r"(?:我|你|大家|都|可以|请|以后|就)*叫我(.+?)(?:就好|就行|就可以|即可|吧)?",
        "用户希望被称为{0}。",
        _is_nickname,
    ),
    _single("residence", "identity", r"我?(?:是)?住在(.+)", "用户住在{0}。", _is_home),
    _single("residence", "identity", r"我?家(?:就)?住?在(.+)", "用户住在{0}。", _is_home),
    _single(
        "residence",
        "identity",
        r"我?(?:从.{1,10}?)?搬(?:家)?(?:到|去|来)了?(.+?)(?:来|住)?",
        "用户搬到了{0}。",
        _is_home,
    ),
    _single("job", "identity", r"我?(在.{1,20}?(?:当|做|担任).+)", "用户{0}。", _is_job),
    _single("employer", "identity", r"我?在(.+?)(?:工作|上班|任职)", "用户在{0}工作。", _is_employer),
    _single("employer", "identity", r"我?(?:入职|加入)了?(.+)", "用户在{0}工作。", _is_employer),
    _single("job", "identity", r"我是((?:一名|一个|一位|个|名)?.+)", "用户是{0}。", _is_job),
    _single("job", "identity", r"我的(?:职业|工作)是(.+)", "用户是{0}。", _is_job),
    _single("origin", "identity", r"我?来自(.+)", "用户来自{0}。", _is_home),
    _single("origin", "identity", r"我?(?:的)?老家(?:是|在)(.+)", "用户来自{0}。", _is_home),
    _single("age", "identity", r"我?(?:今年)?(\d{1,3})岁", "用户{0}岁。"),
    _single("birthday", "identity", r"我?的?生日是(.+)", "用户的生日是{0}。"),
    _single("mother_tongue", "identity", r"我?的?母语是(.+)", "用户的母语是{0}。", _is_language),
    _kin(rf"我?(?:家)?(?:的)?{KIN}(?:的名字)?(?:叫做|叫|名叫)(.+)"),
    _kin(rf"我?(?:家)?(?:有|养了?)(?:一)?(?:个|只|条|位){KIN}[，,]?(?:名字)?叫(.+)"),
    _many("household", "identity", rf"我?(?:家)?(?:有|养了?){_COUNTED}", "用户有{0}。"),
    _many("preference", "preference", r"我?(?:更|比较)(?:喜欢|爱|偏好)(.+)", "用户更喜欢{0}。"),
    _many("preference", "preference", r"我?(?:偏好|倾向于?|习惯)(.+)", "用户偏好{0}。"),
    _many("taste", "preference", r"我?最(喜欢.+)", "用户最{0}。"),
    _many("taste", "preference", r"我?喜欢(.+)", "用户喜欢{0}。"),
    _many("taste", "preference", r"我?爱((?:吃|喝|看|听|玩|读).+)", "用户爱{0}。"),
    _many("taste", "preference", r"我?(?:不再|不太|不怎么|不)喜欢(.+)", "用户不喜欢{0}。"),
    _many("taste", "preference", r"我?(?:讨厌|受不了)(.+)", "用户讨厌{0}。"),
    _many("allergy", "constraint", r"我?(?:对)(.+?)(?:严重)?过敏", "用户对{0}过敏。"),
    _many("diet", "constraint", r"我?(?:从来|从)?不(?:能|可以)?(吃.+)", "用户不{0}。"),
    _many("diet", "constraint", r"我?(?:从来|从)?不(?:能|可以)?(喝.+)", "用户不{0}。"),
    _many("diet", "constraint", r"我?(?:吃素|是素食(?:主义)?者)()", "用户吃素。"),
    _many(
        "tool",
        "context",
        r"我(?:们)?(?:用的是|使用|用)(?!了|过|完|不|得|户|来|于|力|心|处|意|法|你)(.+)",
        "用户用{0}。",
    ),
    _many("tool", "context", r"我(?:们)?(?:已经)?(?:换成|改用)了?(.+)", "用户改用{0}。"),
    _single(
        "answer_language",
        "preference",
        r"(?:我?(?:请|麻烦你?|希望你?|以后|今后|从现在起|从现在开始|始终|总是|一律|都|全部|尽量|务必)+)"
        rf"用(.+?)(?:来)?{_ANSWER}我?(?:的问题)?",
        "用户希望用{0}回答。",
        _is_language,
    ),
    _many(
        "answer_tone",
        "preference",
        rf"(?:以后|请|今后)*(?:的)?{_ANSWER}"
        rf"(?:请|要|得|都|尽量|再)*{_TONE}(?:一点|一些|点儿?|些)?(?:就好|就行)?",
        "用户希望回答{0}。",
    ),
    _many(
        "answer_habit",
        "preference",
        rf"(?:以后|请|今后|{_ANSWER}|里|时|都)*(?:不要|别)(?:再)?(?:用|加|使用|带)?{_HABIT}",
        "用户不希望回答里有{0}。",
    ),
    _many(
        "learning",
        "goal",
        r"我?(?:正在|在|开始)(?:学习|自学|学)(?!校|院|生|期|会|到|过|了)(.+)",
        "用户正在学{0}。",
    ),
    _many("goal", "goal", r"我?(?:打算|计划)(.+)", "用户打算{0}。"),
    _many(
        "goal",
        "goal",
        r"我?想(?:要)?((?:学(?!校)|成为|考(?!虑)|换工作|换个工作|戒|减肥|开一家|开个|跑一次|跑完).*)",
        "用户想{0}。",
    ),
    _many("goal", "goal", r"我?(?:今年|明年)?的?目标是(.+)", "用户的目标是{0}。"),
    _many("decision", "decision", r"我们(?:已经|最后|最终|商量后)?决定了?(.+)", "用户一方决定{0}。"),
    _many("decision", "decision", r"我?(?:已经|最后|最终)?决定了?(.+)", "用户决定{0}。"),
)

ENDINGS = (
    ("residence", re.compile(r"我?(?:已经)?不(?:再)?住在?(.+?)了?")),
    ("employer", re.compile(r"我?(?:已经)?(?:不(?:再)?在(.+?)(?:工作|上班)了?)")),
    ("tool", re.compile(r"我?(?:已经)?不(?:再)?用(.+?)了")),
    ("learning", re.compile(r"我?(?:已经)?不(?:再)?学(.+?)了")),
)
