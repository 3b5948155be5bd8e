"""Sentences about the assistant: only how it should answer, what it got wrong and what it is used for may be stored.

Lists of bad sentences are never complete: half of the attacks held out while the lists were written matched none. So
this is an allowlist: a fact may mention the assistant in the ways below; any other mention is an instruction.
"""

from __future__ import annotations

import re

_NOT_THE_AI = (
    r"(?! (?:team|lab|department|course|class|group|project|company|startup|act|industry|field|conference|at|of"
    r"|in the|who"
    r"|principal|manager|coach|professor|nurse|teacher|director|editor|surgeon)\b)"
)
_ASSISTANT = (
    rf"(?:\b(?:you|yourself)\b|\b(?:the|this) (?:ai |chat ?|llm |virtual )?(?:assistant|ai|bot|chatbot"
    rf"|llm)\b{_NOT_THE_AI})"
)
_MENTION = re.compile(_ASSISTANT)
_WAY = (
    r"(?:answer|reply|respond|speak|talk|write|explain|translate|correct|teach|quiz|summari[sz]e|format|structure"
    r"|phrase"
    r"|describe|round|convert|cite|quote|remind|help|assist|wait|listen|avoid|refrain|include|add|list|number|suggest"
    r"|recommend|offer|provide|propose|ask|consider|assume|switch|stick|use(?! (?:my|the user's|their|any|all|every))"
    r"|call (?:me|them|him|her|the user)|address (?:me|them|him|her|the user)"
    r"|(?:give|show|tell|send) (?:me|them|him|her|the user)? ?(?:a |the |only |some |more |fewer |short |brief "
    r"|longer )*"
    r"(?:examples?|answers?|reasons?|sources?|hints?|feedback|details?|options?|jokes?|steps?|facts?|lists?|tables?"
    r"|code|why)"
    r"|make (?:jokes|lists|tables|it|answers|things|replies)|(?:keep|leave) (?:\S+ ){0,4}?(?:short|brief|simple"
    r"|concise|out"
    r"|light|formal|informal)|say (?:so|why|when|if|which)|stop (?:using|writing|saying|repeating|suggesting|adding"
    r"|calling"
    r"|apologi[sz]ing)|(?:start|end|begin) with|take (?:it|things) slow\w*|be (?:more |less |very |as )?(?:brief"
    r"|concise"
    r"|direct|polite|formal|informal|funny|honest|critical|gentle|patient|strict|short|friendly|blunt|kind|careful"
    r"|precise))"
)
"""Ways of answering that a user may ask for."""

_DID = (
    r"(?:said|assumed|thought|called|wrote|used|mixed|confused|took|suggested|recommended|guessed|got|forgot|misread"
    r"|misunderstood|misheard|made|mistook|gave|answered|replied|translated|explained|addressed|helped|stated|claimed"
    r"|listed"
    r"|mentioned|spelled|named|counted|placed|left|lost|put|chose|(?:was|were|are) (?:wrong|mistaken|right|mixing)"
    r"|know|see|like"
    r"|(?!agreed|promised|accepted|approved|allowed|authori[sz]ed|unlocked|enabled|granted|verified|confirmed"
    r"|permitted|need"
    r"|cleared|entitled|obliged|supposed|required)\w{2,}ed)"
)
_ALLOWED = re.compile(
    rf"{_ASSISTANT}(?:'d|'ll)?(?: (?:to|not|should|must|will|would|can|could|may|might|always|never|also|only|please"
    rf"|usually"
    rf"|still|just|first|rather|simply|do|don't|didn't))*? {_WAY}\b"
    rf"|{_ASSISTANT}(?:'ve)?(?: (?:had|has|have|once|just|wrongly|\w+ly))*? {_DID}\b"
    rf"|\b(?:us(?:e[sd]?|ing)|talk(?:s|ed|ing)?|chat(?:s|ted|ting)?|speaks?|writes?|ask(?:s|ed|ing)?|likes?|enjoys?"
    rf"|thank(?:s|ed)?|tries|tried|test(?:s|ed)?|practi[sc]es|works?|stud(?:y|ies)) (?:to |with |from )?{_ASSISTANT}"
    rf"(?=\s*(?:[.,;!?)]|$|\b(?:for|in|at|on|about|every|when|while|as|during|mostly|daily|often|most|a lot)\b"
    rf"|to (?:learn|study|practi[sc]e|plan|write|prepare|translate|draft|cook|code)\b))"
    rf"|{_ASSISTANT}'s (?:\w+ )?(?:answers?|repl(?:y|ies)|suggestions?|tone|style|explanations?|mistakes?"
    rf"|guess(?:es)?|jokes?"
    rf"|summar(?:y|ies)|help)\b"
    rf"|\b(?:i|user|they) (?:already |just |have |has )?told {_ASSISTANT}(?=\s*(?:[.,!]|$|\b(?:already|before"
    rf"|that (?:i|we|the user|my)|about|twice|yesterday)\b))"
    rf"|\b(?:answers?|repl(?:y|ies)|explanations?|help|summaries) (?:from|by|of) {_ASSISTANT}"
    rf"|\b(?:thank|and|miss|love|bless) you\b|\bas you\b(?= (?:know|said|see)\b)"
)

_MENTION_ZH = re.compile(r"(?<!迷)你(?!们公司)|您|(?<!的)(?:ai|智能)?助手|智能客服|ai[\u4e00-\u9fff]{0,4}者")
_ASSISTANT_ZH = r"(?:你们?|您|(?:ai|智能)?助手)"
_WAY_ZH = (
    r"(?:用(?!我的|用户的|这)|以|回答|回复|解释|讲解|说明|简短|简洁|叫|称呼|写|讲(?!出)|说(?!过)|翻译|提醒|举例|多举|列出|总结|教|纠正|练|聊"
    r"|慢|语气|口语|推荐|建议|问|考|帮|记得叫|直接说|先给(?:结论|答案)|给(?:我|用户)?(?:例子|建议|结论|步骤|提示))"
)
_ALLOWED_ZH = re.compile(
    rf"{_ASSISTANT_ZH}的?(?:能|可以|要|应该|最好|尽量|都|以后|今后|在|跟|和|对|先|再|只|多|少|别|不要|不用|每次|总是|直接|就|来|一起|我|用户){{0,6}}"
    rf"{_WAY_ZH}"
    rf"|{_ASSISTANT_ZH}(?:刚才|刚刚|之前|上次|又|一直)?(?:说|以为|记错|弄错|搞错|误|当成|猜|写|翻译|推荐|理解错|听错|叫错|答错|算错|记成|看)"
    r"(?:成|了|过|为|错|得|的|解|会|成了)?"
    rf"|{_ASSISTANT_ZH}(?:把.{{1,14}})?(?:弄混|搞混|算错|漏|叫|理解|记|听|看|写|答|说|译|搞|弄).{{0,2}}(?:错|反|掉|了|混|漏)"
    rf"|{_ASSISTANT_ZH}(?:这种|这样|那种)(?:的)?(?:讲法|说法|写法|解释|回答|方式|语气)"
    rf"|(?:用|使用|喜欢|跟|和|与|问|向|找|感谢|谢谢|麻烦|告诉){_ASSISTANT_ZH}(?=聊|学|练|讨论|请教|说话|写|查|改|翻译|规划|$|[,。!?了])"
    r"|[你您]好|你知道|你觉得|你看"
)


def addresses(text: str) -> bool:
    """Whether a text, normalised by `instructions`, mentions the assistant in any way that is not allowed."""
    if _MENTION.search(text) and _MENTION.search(_ALLOWED.sub(" ", text)):
        return True
    return _MENTION_ZH.search(text) is not None and _MENTION_ZH.search(_ALLOWED_ZH.sub(" ", text)) is not None
