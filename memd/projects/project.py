"""One project, as one asker sees it: its members, its facts, and the changes that their role allows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Unpack

from memd.config import Settings
from memd.context import Bucket, of_project
from memd.errors import Rejected
from memd.identifiers import check_identifier
from memd.memory import profiles, scoped
from memd.memory.document import Document, Fact, archive_of, facts_of, revised
from memd.memory.facts import id_of, with_id
from memd.memory.hand import profile_edits
from memd.memory.hand.editing import Editing
from memd.memory.hand.steps import Edited, unknown_fact
from memd.memory.listing import FactFilter, ListFilters, SearchFilters, as_listed, checked_filters
from memd.memory.projects.delivery import published
from memd.memory.projects.disputes import disputed_with
from memd.memory.projects.members import ProjectMember, members_of
from memd.memory.projects.proofs import digest_of
from memd.memory.projects.rights import Verb, Visibility, may
from memd.memory.store.protocol import Store
from memd.projects import project_changes
from memd.projects.project_changes import Asker, Change
from memd.projects.timeline import Moment, key_decisions, timeline
from memd.push.times import iso


class Project:
    """A project for one asker. Every method raises Rejected: E_PROJECT_UNKNOWN where there is none for the asker, and
    E_FORBIDDEN where their role does not allow it; and StoreUnavailable, DocumentDamaged. Nothing has changed then."""

    def __init__(self, settings: Settings, store: Store, project_id: str, asker: Asker) -> None:
        self.id = check_identifier("project_id", project_id)
        if settings.store.shared:
            raise Rejected("E_PROJECT_SHARED", "a store that all users share has no projects", "project_id")
        self._settings = settings
        self._store = store
        self._editing = Editing(settings, store)
        self._bucket = of_project(self.id)
        self._asker = asker

    @property
    def bucket(self) -> Bucket:
        """The owner of its document."""
        return self._bucket

    def make(self, owner: str, *, app: str = "") -> None:
        """Make it, with its first owner. `app`: the app that it belongs to; "": any. By whoever runs memd, or an
        admin's token. Its id must be new: that of a closed project is never used again."""
        user = check_identifier("user_id", owner)
        self._change(lambda document, now: project_changes.made(document, app, user, now))

    def close(self) -> None:
        """End it: nothing of it is left but that its id was used."""
        self._change(lambda document, now: project_changes.closed(document, self._asker, now))

    def members(self) -> dict[str, ProjectMember]:
        """The members by user id, the first one first."""
        document = self._read()
        self._asker.check(document, "see_members")
        return members_of(document)

    def set_member(self, user_id: str, role: str) -> None:
        """Add a member, or give one another role: owner, admin, editor, viewer."""
        user = check_identifier("user_id", user_id)
        self._change(lambda document, now: project_changes.with_role(document, self._asker, user, role, now))

    def remove_member(self, user_id: str) -> None:
        """Remove a member, who loses access at once; what they said to the project stays. Everybody may leave."""
        user = check_identifier("user_id", user_id)
        self._change(lambda document, now: project_changes.without(document, self._asker, user, now))

    def facts(self, **filters: Unpack[ListFilters]) -> list[Fact]:
        """Copies of the facts that the asker may read, oldest first, archived ones after them, and at the end what the
        asker alone knows of the project; with `status` and `lastUsedAt`. Filters: as in `Memd.facts`."""
        return self._listed(checked_filters(**filters))

    def archived(self, **filters: Unpack[SearchFilters]) -> list[Fact]:
        """Those that are not active, the latest last."""
        return self._listed(checked_filters(**filters).of_archive())

    def _listed(self, chosen: FactFilter) -> list[Fact]:
        document = self._read()
        standing = self._asker.standing(document)
        if not may(standing, "see_members") and not any(self._may_read(standing, one) for one in facts_of(document)):
            self._asker.check(document, "read")
        shared = [fact for fact in chosen.listed(document) if self._may_read(standing, fact)]
        private = self.private() if "active" in chosen.statuses else []
        if chosen.member is not None and chosen.member == self._asker.user_id:
            chosen = replace(chosen, member=None)  # facts in one's own memory do not say whose they are
        listed = self._as_listed(self._bucket, shared)
        return [*listed, *self._as_listed(self._own, filter(chosen.takes, private))] if private else listed

    def _as_listed(self, bucket: Bucket, facts: Iterable[Fact]) -> list[Fact]:
        accesses = self._store.reading_notes.read(bucket, time.time())
        return [as_listed(fact, accesses) for fact in facts]

    def private(self) -> list[Fact]:
        """Copies of what the asker alone knows of the project, oldest first: these facts are in their own memory."""
        if self._asker.user_id is None:
            return []
        document = self._store.peek(self._own).document
        return [dict(fact) for fact in scoped.within(document, {scoped.project(self.id)})]

    def timeline(self, *, since: str = "", until: str = "") -> list[Moment]:
        """Decisions with their reasons, events and goals, the oldest first. `since`, `until`: ISO 8601."""
        document = self._read()
        self._asker.check(document, "see_members")
        return timeline(document, since=since, until=until)

    def why(self, fact_id: str) -> dict[str, Any]:
        """Where a fact comes from: who said it, in which words and when; of the asker's own words also their turns.

        Raises FactUnknown.
        """
        document = self._read()
        fact = project_changes.found(document, self._asker, fact_id)
        by_id = {id_of(one): one for one in (*facts_of(document), *archive_of(document))}
        return {
            "fact": dict(fact),
            "evidence": [self._with_turn(entry) for entry in fact.get("evidence", ())],
            "disputes": [dict(by_id[one]) for one in sorted(disputed_with(document, fact))],
            "replaced": [dict(by_id[one]) for one in fact.get("replaces", ()) if one in by_id],
        }

    def add_fact(self, content: str, *, category: str | None = None) -> str:
        """Add a fact by hand and return its id."""
        settings = self._settings.apply
        return self._change(
            lambda document, now: project_changes.added(document, self._asker, content, category, now, settings)
        ).fact_id

    def edit_fact(
        self,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        visibility: Visibility | None = None,
    ) -> None:
        """Change a fact's words, its category, or who may read it (`public`: any token of the project's app).

        Raises FactUnknown.
        """
        settings = self._settings.apply
        self._change(
            lambda document, now: project_changes.edited(
                document, self._asker, fact_id, content, category, visibility, now, settings
            )
        )

    def remove_fact(self, fact_id: str) -> None:
        """Remove a fact for good. Raises FactUnknown."""
        self._change(lambda document, now: project_changes.taken_out(document, self._asker, fact_id, now))

    def decide(self, fact_id: str) -> None:
        """Settle a dispute for this fact: those that say otherwise go to the archive. Raises FactUnknown."""
        settings = self._settings.apply
        self._change(lambda document, now: project_changes.decided(document, self._asker, fact_id, now, settings))

    def profile(self) -> dict[str, dict[str, object]]:
        """The project's profile by field, and its key decisions: those of its facts that hold."""
        document = self.check("see_members")
        entries = profile_edits.shown(profiles.profile_of(document))
        return {**entries, "keyDecisions": {"value": key_decisions(document)}}

    def set_profile(self, field: str, value: object) -> None:
        """Set a field of the project's profile, by an owner or an admin."""

        def step(document: Document, now: datetime) -> Edited:
            self._asker.check(document, "profile")
            return profile_edits.set_field(document, field, value, now)

        self._change(step)

    def unset_profile(self, field: str) -> None:
        """Take a field out of the project's profile."""

        def step(document: Document, now: datetime) -> Edited:
            self._asker.check(document, "profile")
            return profile_edits.unset_field(document, field, now)

        self._change(step)

    def publish(self, fact_id: str) -> str:
        """Share a fact that the asker kept private so far; returns its id in the project. Raises FactUnknown.

        It is added there, and then leaves the asker's own memory: cut short, it is in both, and may be repeated.
        """
        user = self._user
        fact = with_id(self.private(), fact_id)
        document = self._read()
        self._asker.check(document, "create")
        if fact is None:
            raise unknown_fact()
        own = {name: value for name, value in fact.items() if name not in ("id", "scope", "scopeId", "visibility")}

        def step(document: Document, now: datetime) -> Edited:
            self._asker.check(document, "create")
            result = published(document, own, user, self._settings.apply, now)
            if not result.facts:
                raise Rejected("E_FACT_REMOVED", "this was removed from the project, or says nothing new", "fact_id")
            return Edited(result.document, result.facts[0])

        shared = self._change(step).fact_id
        self._editing.change(self._own, lambda document, now: _without_private(document, fact_id, now))
        return shared

    def hide(self, fact_id: str) -> str:
        """Take a fact back that the asker alone has said: it is theirs alone again. Returns its id there.

        Raises FactUnknown; Rejected with E_NOT_YOURS_ALONE where others have said it too.
        """
        fact = project_changes.hidden(self._read(), self._asker, fact_id, datetime.now(UTC)).fact
        assert fact is not None  # noqa: S101  (hidden raises otherwise)
        _, kept = self._editing.change(self._own, lambda document, now: _with_private(document, fact, self.id, now))
        self._change(lambda document, now: project_changes.hidden(document, self._asker, fact_id, now))
        return kept.fact_id

    def export(self) -> dict[str, Any]:
        """Everything of the project that a member may read, as JSON values."""
        document = self._read()
        self._asker.check(document, "export")
        members = {user: member._asdict() for user, member in members_of(document).items()}
        facts = [dict(fact) for fact in facts_of(document)]
        archive = [dict(fact) for fact in archive_of(document)]
        return {"projectId": self.id, "members": members, "facts": facts, "archive": archive}

    def check(self, verb: Verb = "read") -> Document:
        """The document, for doors that do more with it. Raises Rejected where the asker may not do this."""
        document = self._read()
        self._asker.check(document, verb)
        return document

    @property
    def _user(self) -> str:
        if self._asker.user_id is None:
            raise Rejected("E_USER_ID_MISSING", "name the user whose fact it is", "user_id")
        return self._asker.user_id

    @property
    def _own(self) -> Bucket:
        return Bucket(self._user)

    def _read(self) -> Document:
        return self._store.peek(self._bucket).document

    def _may_read(self, standing: Any, fact: Mapping[str, Any]) -> bool:
        visibility: Visibility = "public" if fact.get("visibility") == "public" else "members"
        return may(standing, "read", visibility, own=self._asker.owns(dict(fact)))

    def _with_turn(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """An entry of evidence without the digest of its message; with its turn if the asker said it."""
        told = {name: entry[name] for name in ("by", "quote", "saidAt") if name in entry}
        if self._asker.user_id is None or entry.get("by") != self._asker.user_id:
            return told
        own = self._store.peek(self._own).document
        turns = self._editing.said(self._own, own).turns
        mine = (turn for turn in turns if digest_of(self._user, turn.id) == entry.get("message"))
        turn = next(mine, None)
        return told if turn is None else {**told, "thread": turn.thread, "turn": turn.text}

    def _change(self, step: Change) -> Edited:
        """Do one change in one write."""
        return self._editing.change(self._bucket, step)[1]


def _without_private(document: Document, fact_id: str, now: datetime) -> Edited:
    facts = scoped.facts_of(document)
    left = [fact for fact in facts if id_of(fact) != fact_id]
    if len(left) == len(facts):
        return Edited(document, fact_id)
    return Edited(revised(scoped.with_facts(document, left), iso(now)), fact_id)


def _with_private(document: Document, fact: Fact, project_id: str, now: datetime) -> Edited:
    """A user's document with a fact that they take back from a project; the same when it has it already."""
    kept, [fact_id] = scoped.with_private(document, project_id, [fact])
    return Edited(document if kept is document else revised(kept, iso(now)), fact_id)
