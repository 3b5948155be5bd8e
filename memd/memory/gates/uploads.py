"""Upload events: sentences that only say that a file was uploaded. They hold for one session and are never stored.

"Uploads invoices to a portal every Friday" is a habit, "builds an upload service" is work: neither is an event.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_FILE_EN = re.compile(
    r"\b(?:files?|documents?|attachments?|images?|pictures?|photos?|screenshots?|spreadsheets?|pdfs?|csvs?|zip"
    r"|archives?|slides?|presentations?|datasets?|logs?|transcripts?|reports?|resume|cv)\b|\.[a-z][a-z0-9]{1,4}\b",
    re.IGNORECASE,
)
_EVENT_EN = re.compile(
    r"(?:in this (?:session|conversation|chat),? )?(?:the user|user|they|he|she|i)(?:'ve|'s)? "
    r"(?:(?:has|have|had|just|recently|also|already) ){0,3}(?:uploaded|attached)\b"
    r"|(?:the user|user|they|he|she|i)(?:'s|'m|'re| is| are| am)(?: currently| just| now)? (?:uploading|attaching)\b"
    r"|(?:the )?user's (?:uploaded|attached|shared) \w+ (?:is|was|has)\b"
    r"|(?:an?|the|one|two|three|several|some|\d{1,3})\b.{0,120}?\b(?:was|were|has been|have been) "
    r"(?:just |recently )?(?:uploaded|attached)\b",
    re.IGNORECASE,
)
_FILE = (
    r"(?:(?:pdf|csv|zip|excel|word|text|image|audio|log|json) )?(?:files?|documents?|attachments?|images?|pictures?"
    r"|photos?|screenshots?|spreadsheets?|pdfs?|csvs?|archives?|datasets?|transcripts?)"
)
_HANDED_EN = re.compile(
    r"(?:the user|user)(?:(?:'s| has| have| had| just| recently| also| already){0,3} (?:shared|sent|provided)"
    r"|(?:'s| is)(?: currently| just| now)? (?:sharing|sending|providing)) "
    rf"(?:(?:an?|the|one|two|three|several|some|\d{{1,3}}|another) )?{_FILE}\b"
    r"(?!.*\b(?:at|for|by|on|onto|every)\b|.*\bto (?!(?:this|the (?:chat|conversation|assistant))\b|(?:me|us)\b)"
    r"|.*\bwith (?:(?:an?|h(?:is|er)|their|my|the(?! assistant\b)) |(?-i:[A-Z])))"
    rf"|(?:an?|the|one|two|three|several|some)\s{_FILE} (?:was|were|has been|have been) (?:shared|sent|provided) "
    r"by (?:the )?user\b",
    re.IGNORECASE,
)
"""Handed to the assistant, for nobody else is named: only where the file is what the verb is about."""

_HANDED_ZH = re.compile(
    r"(?:用户|我)(?:(?:刚刚?|已经?|正在|又|还)+(?:发送|分享|提供|发来?)(?:了|过)?|(?:发送|分享|提供|发来?)(?:了|过)|发来)"
    r"[一二两三几\d]*[张份个些篇]?(?:文件|文档|附件|图片|照片|截图|表格|资料|简历|报告|数据集|幻灯片|压缩包|pdf|csv)"
    r"(?:给助手)?[。.]?$",
    re.IGNORECASE,
)
_MORE_EN = re.compile(
    r"\b(?:prefers?|likes?|loves?|hates?|works|lives|uses|plans to|always|never|every|daily|weekly|monthly)\b",
    re.IGNORECASE,
)
_EVENT_ZH = re.compile(
    r"(?:在?(?:本次|这次)(?:对话|会话)中[,，]?)?(?:用户|我|他|她)(?:刚|才|已|经|最近|还|又|今天){0,4}"
    r"(?:正在|在)?(?:上传|附上|附加)(?:了|过)?[^。！？]{0,60}?"
    r"(?:文件|文档|附件|图片|照片|截图|表格|资料|简历|报告|数据集|幻灯片|压缩包|pdf|csv|[.．][a-z][a-z0-9]{1,4})",
    re.IGNORECASE,
)
_MORE_ZH = re.compile(r"喜欢|偏好|讨厌|习惯|打算|总是|从不|住在|从事|任职|每[天周月年]")
_ELSEWHERE = re.compile(
    r"\b(?:uploaded|uploading|attached|attaching)\b.{0,80}?\b(?:to|on|onto) "
    r"(?!(?:this|the|our) (?:chat|conversation|session|thread|assistant|message)\b|(?:me|us|you)\b)\w"
    r"|\b(?:uploaded|uploading|attached|attaching)\b.{0,80}?\bfor "
    r".{0,30}?\b(?:portal|website|site|platform|application)\b"
    r"|(?:上传|传)(?:了|过)?[^。！？]{0,30}?到(?!这里|这儿|对话|会话|本次|聊天|助手)\w"
    r"|把[^。！？]{1,30}(?:上传|传)到(?!这里|这儿|对话|会话|本次|聊天|助手)\w",
    re.IGNORECASE,
)
"""Uploaded to another place than the conversation: something the user did."""

_TRACE = re.compile(r"/mnt/user-data/uploads/|</?(?:uploaded_files|current_uploads)>", re.IGNORECASE)
_UPLOAD_EN = ("uplo", "attac", "shar", "sent ", "sending ", "provid")
_UPLOAD = (*_UPLOAD_EN, "上传", "附上", "附加", "发", "分享", "提供")
"""Each event holds one of these, in whatever case."""

_GAP = re.compile(r"((?<=[.!?])\s+|(?<=[。！？]))")


def is_upload_event(text: str) -> bool:
    """Whether every sentence of the text only says that something was uploaded, in English or Chinese."""
    if not names_upload(text):
        return not text.strip()
    return all(_is_event(sentence) for sentence in _GAP.split(text)[::2] if sentence.strip())


def without_upload_events(text: str) -> str:
    """The text without sentences that only report an upload."""
    if not names_upload(text):
        return text
    parts = [*_GAP.split(text), ""]
    kept = [sentence + gap for sentence, gap in zip(parts[::2], parts[1::2], strict=True) if not _is_event(sentence)]
    return "".join(kept).strip()


def names_upload(text: str) -> bool:
    """Whether the text may hold an upload event: no sentence of one that does not is any."""
    folded = text.lower()
    return any(word in folded for word in (_UPLOAD_EN if folded.isascii() else _UPLOAD))


def any_names_upload(texts: Sequence[str]) -> bool:
    """Whether one of many texts `names_upload`: most are ASCII, and searched twice as fast apart from the others."""
    return names_upload("\n".join([text for text in texts if text.isascii()])) or names_upload(
        "\n".join([text for text in texts if not text.isascii()])
    )


def _is_event(sentence: str) -> bool:
    text = " ".join(sentence.split())
    if _TRACE.search(text):
        return True
    if _ELSEWHERE.search(text):
        return False
    if _HANDED_EN.match(text) or _HANDED_ZH.match(text):
        return True
    if _EVENT_ZH.match(text):
        return not _MORE_ZH.search(text)
    return bool(_EVENT_EN.match(text) and _FILE_EN.search(text) and not _MORE_EN.search(text))
