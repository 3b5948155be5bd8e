"""The operations on projects."""

from __future__ import annotations

from memd.http import openapi_schemas as schemas
from memd.http import project_fields, projects
from memd.http.operation import Operation


def project_operations() -> list[Operation]:
    one, fact = project_fields.OneProject, "/v1/projects/facts/{fact_id}"
    return [
        Operation(
            "GET", "/v1/projects", "projects", "The projects of a user", "read", projects.listed,
            {200: schemas.PROJECTS}, query=project_fields.MyProjects,
            description="Those in which the user is a member, of the token's app, with the user's role in each.",
        ),
        Operation(
            "POST", "/v1/projects", "makeProject", "Make a project of the token's app", "admin", projects.make,
            {201: schemas.ID}, body=project_fields.NewProject, refusals=(409,),
            description="Its id is never used again. `user_id` is the first owner.",
        ),
        Operation(
            "DELETE", "/v1/projects", "closeProject", "Close a project for good", "person", projects.close,
            {204: None}, query=one, refusals=(403, 404, 409),
            description="Only an owner may. Nothing is left but that the id was used.",
        ),
        Operation(
            "GET", "/v1/projects/members", "projectMembers", "The members of a project", "read", projects.members,
            {200: schemas.MEMBERS}, query=one, refusals=(404,),
            description="With their roles: owner, admin, editor, viewer. Every member may ask.",
        ),
        Operation(
            "PUT", "/v1/projects/members", "setProjectMember", "Add a member, or give one another role", "person",
            projects.set_member, {200: schemas.MEMBER}, body=project_fields.MemberRole, refusals=(403, 404, 409),
            description="Owners and admins may; only owners make and unmake owners, and one always stays.",
        ),
        Operation(
            "DELETE", "/v1/projects/members", "removeProjectMember", "Remove a member, who loses access at once",
            "person", projects.remove_member, {204: None}, query=project_fields.OneMember, refusals=(403, 404, 409),
            description="What the member said to the project stays.",
        ),
        Operation(
            "GET", "/v1/projects/profile", "projectProfile", "A project's profile, with its key decisions", "read",
            projects.profile, {200: schemas.PROFILE}, query=one, refusals=(404,),
            description="By field its value, when it was set and by whom. Blocks that name the project begin with it.",
        ),
        Operation(
            "PUT", "/v1/projects/profile", "setProjectProfile", "Set a field of a project's profile", "person",
            projects.set_profile, {200: schemas.PROFILE_FIELD}, body=project_fields.ProjectProfileSet,
            refusals=(403, 404, 409),
            description="Owners and admins may.",
        ),
        Operation(
            "DELETE", "/v1/projects/profile", "unsetProjectProfile", "Take a field out of a project's profile",
            "person", projects.unset_profile, {204: None}, query=project_fields.ProjectProfileUnset,
            refusals=(403, 404, 409),
            description="Owners and admins may.",
        ),
        Operation(
            "GET", "/v1/projects/timeline", "projectTimeline", "What was decided and happened, by day", "read",
            projects.timeline, {200: schemas.TIMELINE}, query=project_fields.ProjectPeriod, refusals=(404,),
            description="Decisions, events and goals that the user may read, oldest first, with their reasons.",
        ),
        Operation(
            "GET", "/v1/projects/facts", "projectFacts", "The facts of a project that the user may read", "read",
            projects.facts, {200: schemas.LISTED_FACTS}, query=project_fields.ProjectFacts, refusals=(404,),
            description="With what the user alone knows of it, which has the visibility `owner_only`.",
        ),
        Operation(
            "POST", "/v1/projects/facts", "addProjectFact", "Add a fact by hand", "person", projects.add_fact,
            {201: schemas.ID}, body=project_fields.NewProjectFact, refusals=(403, 404, 409),
            description="In the name of the user, who must be an editor, an admin or an owner. All members read it.",
        ),
        Operation(
            "GET", fact, "whyProjectFact", "Who said a fact, in which words, and what disputes it", "read",
            projects.why, {200: schemas.PROJECT_WHY}, query=one, refusals=(404,),
            description="Turns only to who said them, with the scope `said`.",
        ),
        Operation(
            "PATCH", fact, "editProjectFact", "Change a fact's words, category or visibility", "person",
            projects.edit_fact, {200: schemas.ID}, body=project_fields.ProjectFactEdit, refusals=(403, 404, 409),
            description="Editors change their own facts, owners and admins all. The archive keeps the earlier version.",
        ),
        Operation(
            "DELETE", fact, "removeProjectFact", "Remove a fact for good", "person", projects.remove_fact,
            {204: None}, query=one, refusals=(403, 404, 409),
            description="Editors remove their own facts, owners and admins all. No conversation brings it back.",
        ),
        Operation(
            "POST", f"{fact}/publish", "publishFact", "Share a fact that the user alone knows", "person",
            projects.publish, {200: schemas.ID}, body=one, refusals=(403, 404, 409),
            description="It leaves the user's own memory and becomes the project's.",
        ),
        Operation(
            "POST", f"{fact}/hide", "hideFact", "Take a fact back that the user alone has said", "person",
            projects.hide, {200: schemas.ID}, body=one, refusals=(403, 404, 409),
            description="422 E_NOT_YOURS_ALONE: others have said it as well.",
        ),
        Operation(
            "POST", f"{fact}/decide", "decideDispute", "Settle a dispute for a fact", "person", projects.decide,
            {200: schemas.ID}, body=one, refusals=(403, 404, 409),
            description="Owners and admins may. The facts that it disputed go to the archive.",
        ),
    ]  # fmt: skip
