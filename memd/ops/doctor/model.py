"""The model's endpoint: whether it responds and accepts the key. It costs no tokens and never shows the key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import replace

from memd.config import ExtractionSettings
from memd.context import Bucket, Message
from memd.errors import ExtractionFailed, MemdError, NoUpdate
from memd.extraction import Extraction, Learnt, Request, Usage, chosen, open_extractor, probe
from memd.extraction import endpoint as endpoint_name
from memd.extraction.learnt import SCHEMA, schema_in_prompt
from memd.inbox import endpoints
from memd.inbox.connection import send
from memd.memory.document import empty_document
from memd.ops.doctor.checkup import Checkup, Verdict, bad, ok, warn
from memd.printable import counted, noun

DEADLINE_S = 10.0
FORMLESS = "bad_reply"
"""The code of a reply that is not a valid update."""

ASKED_WITH = "I live in Porto and I am allergic to nuts."
"""The message of the real call: nobody's, with something to remember in it."""

HELPS = "choose a model that keeps to a schema (docs/models.md)"


def endpoint(checkup: Checkup) -> Verdict:
    """The endpoint describes the model."""
    settings = checkup.settings.extraction
    if chosen(settings) == "rules":
        return ok(
            "none: the offline extractor reads plain statements (no key is set, or extraction.extractor is rules)"
        )
    if settings.class_ is not None:
        return ok(f"an extractor of your own ({settings.class_}); memd doctor --ask calls it")
    problem = asyncio.run(probe(settings, min(DEADLINE_S, settings.deadline_s)))
    if problem is None:
        return _form(checkup) or ok(f"{settings.model}: the endpoint responds and accepts the key{_learnt(checkup)}")
    if problem.code == "model_not_found":
        return warn(
            f"the endpoint responds, but does not describe the model {settings.model}; not every endpoint does"
            f"{_learnt(checkup)}"
        )
    return bad(str(problem)) if problem.code != "rate_limited" else warn(str(problem))


def reply(checkup: Checkup) -> Verdict:
    """A real call and its reply: `memd doctor --ask`. It is asked as if nothing were known of the endpoint.

    A reply that is no update is repaired once, as a worker does it: the second request names the error, and has the
    schema in the prompt, as the first reply shows that nothing enforced it.
    """
    settings = checkup.settings.extraction
    found_out = Learnt()
    started = time.monotonic()
    try:
        extraction, first = asyncio.run(_ask(settings, found_out))
    except ExtractionFailed as failure:
        advice = f"{without(found_out.names)}: {HELPS}" if isinstance(failure, NoUpdate) else ""
        return bad(f"no update came back ({failure}){advice}")
    took = time.monotonic() - started
    facts, tokens = counted(len(extraction.update.new_facts), "fact"), extraction.usage
    cost = (
        f"{tokens.input_tokens + tokens.cache_read_tokens + tokens.cache_write_tokens} + {tokens.output_tokens} tokens"
    )
    found = f"an update with {facts} from one message in {took:.1f} s ({cost}){without(found_out.names)}"
    found += "; the first reply was no update, and was repaired as the daemon does it" if first else ""
    return ok(found) if extraction.update.new_facts else warn(f"{found}; the message holds one, so try another model")


async def _ask(settings: ExtractionSettings, found_out: Learnt) -> tuple[Extraction, NoUpdate | None]:
    """The extraction, with the cost of both calls, and the failure of the first reply if that was no update."""
    extractor = open_extractor(settings, 1, found_out)
    request = Request(empty_document(Bucket("doctor")), (Message("user", ASKED_WITH),))
    try:
        try:
            return await extractor.extract(request), None
        except NoUpdate as first:
            extraction = await extractor.extract(replace(request, repair=str(first)))
            return replace(extraction, usage=extraction.usage + (first.usage or Usage())), first
    finally:
        await extractor.aclose()


def without(names: Collection[str]) -> str:
    """What the endpoint does not take, as the end of a sentence; empty when it takes everything."""
    fields = sorted(set(names) - {SCHEMA})
    parts = [f"it is asked without {', '.join(fields)}, which it refuses"] if fields else []
    if schema_in_prompt(frozenset(names)):
        parts.append("the schema stands in the prompt, as nothing enforces it")
    return "".join(f"; {part}" for part in parts)


def _learnt(checkup: Checkup) -> str:
    """The same from the inbox, where the workers keep it."""
    try:
        call = endpoints.learnt(endpoint_name(checkup.settings.extraction))
        return without(checkup.ask(lambda client: send(client, call)))
    except MemdError:  # the server's own check reports it
        return ""


def _form(checkup: Checkup) -> Verdict | None:
    """A verdict on what died of invalid replies, from the inbox's counters, so it spends no tokens; None without many.

    While no reply is valid, nothing dies: the breaker is open then, and its check says so.
    """
    try:
        stats = checkup.figures.stats
    except MemdError:  # the server's own check reports it
        return None
    formless, stored = stats.get(f"dead:{FORMLESS}", 0), stats.get("stored", 0)
    if not formless or stored > formless:
        return None
    died = f"{counted(formless, 'push', 'pushes')} died as the replies were not in the form asked for ({FORMLESS})"
    sentence = f"{died}, {stored} {noun(stored, 'was', 'were')} stored"
    advice = "choose a model that keeps to a schema"
    return warn(f"{sentence}: {advice}") if stored else bad(f"{sentence}: {advice}, then memd dead retry")
