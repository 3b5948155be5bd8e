"""Every error memd raises on purpose: one root, few children, a sentence each.

Exceptions of libraries (Redis, the file system, the SDK) are translated by the module that calls the library, nowhere
else. `exit_code` is the exit code of the CLI; the numbers are those of BSD's sysexits.h.
"""

from __future__ import annotations

from typing import Any


class MemdError(Exception):
    """The root. The message is one sentence of codes, fields and limits, never values: anyone may read it."""

    exit_code = 70


class ConfigError(MemdError):
    """A setting is unknown, out of range or contradicts another one. Nothing was started."""

    exit_code = 78


class Rejected(MemdError):
    """Input was refused, and nothing of it was stored. `code`: the reason; `field`: where; `limit`: what is allowed."""

    exit_code = 65

    def __init__(self, code: str, sentence: str, field: str = "", limit: int | None = None) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code
        self.field = field
        self.limit = limit


class FactUnknown(Rejected):
    """The memory has no fact with this id, or has it no longer. Nothing was changed."""


class InboxUnavailable(MemdError):
    """The server cannot be reached or does not reply. Nothing was moved.

    The message names the server's address, without user and password. `for_clients` is the message without it.
    """

    exit_code = 69

    def __init__(self, sentence: str, for_clients: str = "") -> None:
        super().__init__(sentence)
        self.for_clients = for_clients or sentence


class AccountRefused(InboxUnavailable):
    """The server refuses the user or the password. A process that starts ends; one that runs keeps trying."""

    exit_code = 77


class NotAllowed(AccountRefused):
    """The account lacks a right on the server. Nothing was done."""


class InboxFull(MemdError):
    """The server is near its memory limit and refuses pushes. Push again when the backlog has drained."""

    exit_code = 75


class ServerUnfit(MemdError):
    """The server is too old, evicts keys or does not persist, so memd could not keep its guarantees on it."""

    exit_code = 78


class OtherStore(MemdError):
    """The inbox belongs to another store than the one in the settings; nothing was claimed, scheduled or forgotten."""

    exit_code = 78


class OtherSettings(MemdError):
    """A scheduler with other settings runs on this inbox. This one has changed nothing, and does not go on."""

    exit_code = 78


class AlreadyRunning(MemdError):
    """Another `memd up` uses this data folder, or another process runs its server."""

    exit_code = 73


class NotReady(MemdError):
    """The inbox functions are not loaded: no scheduler has run on this server yet."""

    exit_code = 69


class ExtractionFailed(MemdError):
    """The extractor returned no usable update. `code`: the reason. The drain releases or buries the context."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code
        self.usage: Any = None
        """The tokens of the reply that was refused (extraction.Usage), if the endpoint reported them."""


class ModelUnavailable(ExtractionFailed):
    """An outage, a rate limit or a refused account. It costs no attempt. `retry_after_s`: wait at least this long.

    `reached`: whether the endpoint gave an HTTP status. Without one, the fault may be this host's alone.
    """

    def __init__(self, code: str, sentence: str, retry_after_s: float | None = None, *, reached: bool = True) -> None:
        super().__init__(code, sentence)
        self.retry_after_s = retry_after_s
        self.reached = reached


class ContentRefused(ExtractionFailed):
    """The model or the endpoint refuses this content. It costs an attempt; on the last one the content is halved."""


class NoUpdate(ContentRefused):
    """The reply is no update, though its form was mended: prose, broken JSON, another object.

    The sentence names the error without text of the reply; the next request repeats it to the model. Never halved.
    """


class ContentTooLong(ExtractionFailed):
    """The request or the reply is too long for the model, so the content must be split."""


class Truncated(ContentTooLong):
    """The reply reached the limit of tokens, or has `over` more items than an update may have.

    `complete`: the update of its complete items (extraction.Update), if any, with as many as it may have. It counts
    only where the content cannot be split any more.
    """

    def __init__(self, complete: Any = None, over: int = 0) -> None:
        super().__init__("truncated", f"the answer {'has too many items' if over else 'reached max_tokens'}")
        self.complete = complete
        self.over = over


class StoreUnavailable(MemdError):
    """The file system or the database failed. The old document is intact and the context stays in the inbox."""

    exit_code = 74


class StoreUnfit(StoreUnavailable):
    """The database does not keep what it has acknowledged, or has other tables than this version of memd needs."""

    exit_code = 78


class StoreSealed(StoreUnavailable):
    """The store is being moved and takes no writes, or has been moved. Nothing was written; contexts wait."""

    exit_code = 75


class DocumentDamaged(MemdError):
    """A memory document cannot be read, or belongs to another user. The file was left as it is.

    `place`: the damaged field (`facts[3].content`); empty when it is the whole file.
    """

    exit_code = 65

    def __init__(self, sentence: str, place: str = "") -> None:
        super().__init__(sentence)
        self.place = place


class DocumentTooNew(DocumentDamaged):
    """A newer memd wrote the document; this one leaves it alone. Upgrade memd."""


class EmbedderFailed(MemdError):
    """An embedder failed. With `recall.embedder` nothing was searched; with `vectors.url` no vector was written."""

    exit_code = 69


class EmbedderRefused(EmbedderFailed):
    """The embedder answers and refuses these texts, or the settings of `vectors`."""


class ClaimLost(MemdError):
    """The lease ran out and another worker has the claim. Nothing was written for it."""


class Conflict(MemdError):
    """The document on disk is not the one that was loaded. Nothing was written; load it and apply the update again."""


class SessionChanged(MemdError):
    """Another process has saved this session since it was loaded. Nothing was written; load it again.

    `unsaved`: the turns that were added since, to be added again after the load.
    """

    exit_code = 75

    unsaved: tuple[Any, ...] = ()


class SessionForgotten(MemdError):
    """The user, or this memory of them, was forgotten since the session was loaded. Nothing was written or pushed."""

    exit_code = 65
