"""Injection: orders to an assistant, and markup that opens or closes a prompt, in texts that should only describe.

Cautious, as people do write "always", tags of code, and of assistants: what is found here is nothing that a fact about
a person would say. English and Chinese.
"""

from __future__ import annotations

import re

from memd.memory.text import one_line

_ORDERS = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,40}\b(?:instructions?|prompts?|guidelines?"
    r"|(?:previous|prior|above|earlier|safety|system) (?:rules?|messages?|context|text|policy|policies))\b",
    r"\b(?:from now on|henceforth),? (?:you|the assistant)\b|\byou are now\b|\bpretend (?:that )?(?:you|to be)\b",
    r"\b(?:reveal|print|repeat|show|leak)\b[^.!?]{0,30}\bsystem prompt\b|\bdeveloper mode\b",
    r"(?:\b(?:assistant|chatbot)|^(?:the )?(?:agent|ai|model)) (?:may|must|shall|should|can|will now"
    r"|is (?:allowed|authori[sz]ed|permitted) to|has (?:permission|the right) to)\b",
    r"\byou (?:may|must|shall|should|have to|are (?:allowed|authori[sz]ed|permitted) to|have permission to)\b",
    r"\b(?:do not|don't|never) (?:tell|inform|warn|alert|mention (?:this|it) to|reveal (?:this|it) to) "
    r"(?:the user|anyone|anybody|them)\b",
    r"\bwithout (?:(?:asking|telling|informing) (?:the user|for)"
    r"|(?:any |the user's )?(?:confirmation|approval|consent))\b",
    r"(?:^|[.!?:;]\s*|\bplease |\balways |\bthen )"
    r"(?:send|forward|upload|post|e-?mail|transmit|exfiltrate)\b[^.!?]{0,80}?(?:https?://|[\w.+-]+@[\w-]+\.\w)",
    r"(?:^|[.!?:;]\s*|\bplease |\balways |\bthen )(?:run|execute|invoke|call)\b[^.!?]{0,20}"
    r"\b(?:commands?|scripts?|shell|tools?|functions?)\b|\brm -rf\b",
    r"(?:忽略|无视|無視|忘记|忘掉|绕过)[^。！？]{0,12}(?:指令|规则|規則|提示词?|系统消息|设定|限制)",
    r"从现在(?:开始|起)[，,]?你|你现在是|假装你|(?:你|请你?)(?:来)?扮演",
    r"你(?:必须|务必|应当|应该|有权|可以直接|被允许|被授权)|(?:助手|助理|机器人|模型|智能体)"
    r"(?:必须|务必|应当|应该|可以|有权|被允许|被授权)",
    r"不(?:要|得|准|许|能)(?:告诉|透露给?|通知|提醒)(?:用户|任何人|别人|他人)",
    r"(?:无需|不用|不必|不需)(?:经过)?(?:用户|我)?的?(?:确认|同意|批准|许可)",
    r"(?:把|将)[^。！？]{0,40}(?:发送|转发|上传|提交)(?:到|至|给)[^。！？]{0,20}(?:https?://|[\w.+-]+@[\w-]+\.\w)",
)
_ORDER = re.compile("|".join(f"(?:{one})" for one in _ORDERS), re.IGNORECASE)

_TAGS = (
    "memory|system|assistant|user|human|developer|instructions?|prompts?|context|conversation|messages?|tool_\\w+|tools?"
    "|function_\\w+|functions?|thinking|antml:\\w+|uploaded_files|current_uploads|system-reminder|script|iframe|img|style"
)
_MARKUP = re.compile(
    rf"</?\s*(?:{_TAGS})(?:\s[^<>]{{0,200}})?/?>|&lt;/?\s*(?:{_TAGS})\s*/?&gt;|<\|[\w ]{{1,40}}\|>|\[/?INST\]"
    r"|!\[[^\]]*\]\(\s*https?:|\]\(\s*(?:javascript|data):|(?:^|\s)#{2,} ?(?:system|instructions?|assistant)\b"
    r"|^\s*(?:system|assistant|developer)\s*[:：]",
    re.IGNORECASE,
)


def orders(text: str) -> bool:
    """Whether the text tells an assistant what to do or what it may, instead of describing somebody."""
    return _ORDER.search(one_line(text)) is not None


def markup(text: str) -> bool:
    """Whether the text has tags or marks that a prompt is made of, or characters that nobody sees."""
    return _MARKUP.search(text) is not None or one_line(text) != " ".join(text.split())
