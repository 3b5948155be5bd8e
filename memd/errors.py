"""Every error memd raises on purpose: one root, few children, a sentence each.

Foreign exceptions (Redis, the file system, the SDK) are translated at the edge that meets them and nowhere else.
`exit_code` is what the CLI ends with; the numbers are those of BSD's sysexits.h.
"""

from __future__ import annotations

from typing import Any


class MemdError(Exception):
    """The root: the message is one sentence that may be shown to anyone (codes, fields, limits; never values)."""

    exit_code = 70


class ConfigError(MemdError):
    """A setting is unknown, out of range or contradicts another one; nothing was started."""

    exit_code = 78


class Rejected(MemdError):
    """Input was refused: `code` says why, `field` where, `limit` what is allowed. Nothing of it was stored."""

    exit_code = 65

    def __init__(self, code: str, sentence: str, field: str = "", limit: int | None = None) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code
        self.field = field
        self.limit = limit


class FactUnknown(Rejected):
    """The memory has no such fact (any more); nothing was changed."""


class InboxUnavailable(MemdError):
    """The server cannot be reached or does not answer; whatever was being moved stays where it was."""

    exit_code = 69


class AccountRefused(InboxUnavailable):
    """The server refuses the account: its user or password. A start ends here; what runs goes on trying."""

    exit_code = 77


class NotAllowed(AccountRefused):
    """The account lacks a right on the server; nothing was done."""


class InboxFull(MemdError):
    """The server is near its memory limit and refuses pushes until the backlog has drained; push again later."""

    exit_code = 75


class ServerUnfit(MemdError):
    """The server is too old, evicts keys or does not persist: memd will not promise anything on it."""

    exit_code = 78


class OtherStore(MemdError):
    """The inbox belongs to another store than the one in the settings; nothing was claimed, scheduled or forgotten."""

    exit_code = 78


class AlreadyRunning(MemdError):
    """Another `memd up` holds this data folder."""

    exit_code = 73


class NotReady(MemdError):
    """The inbox functions are not loaded: no scheduler has ever started on this server."""

    exit_code = 69


class ExtractionFailed(MemdError):
    """The extractor gave no usable update. `code` names the reason; the context is released or buried by the drain."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code
        self.usage: Any = None
        """What an answer that was refused has cost (extraction.Usage), when the endpoint said so."""


class ModelUnavailable(ExtractionFailed):
    """An outage, a limit or a refused account: costs no attempt. `retry_after_s` is the endpoint's wish, a floor."""

    def __init__(self, code: str, sentence: str, retry_after_s: float | None = None) -> None:
        super().__init__(code, sentence)
        self.retry_after_s = retry_after_s


class ContentRefused(ExtractionFailed):
    """The model answered, but not usably, for this content (refusal, wrong schema, not JSON): costs an attempt."""


class ContentTooLong(ExtractionFailed):
    """The request or its answer is too long for the model: the claim must be made smaller; costs an attempt."""


class StoreUnavailable(MemdError):
    """The file system refused (full, read-only, EIO): the old document is intact and the context stays."""

    exit_code = 74


class DocumentDamaged(MemdError):
    """A memory document cannot be read as one, or belongs to someone else; it was left where it is.

    `place`: where in it something is wrong (`facts[3].content`), empty when it is about the whole file.
    """

    exit_code = 65

    def __init__(self, sentence: str, place: str = "") -> None:
        super().__init__(sentence)
        self.place = place


class DocumentTooNew(DocumentDamaged):
    """The document was written by a newer memd: it is left alone until this one is upgraded."""


class EmbedderFailed(MemdError):
    """The app's own function from text to vector failed; nothing was searched."""

    exit_code = 69


class ClaimLost(MemdError):
    """The lease ran out and the claim belongs to somebody else; nothing was written for it."""


class Conflict(MemdError):
    """The document on disk is not the one that was loaded: nothing was written; load it again and apply again."""
