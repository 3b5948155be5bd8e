// Generated from the OpenAPI document of `memd serve` by `make client-types`. Do not edit.

/** Fields that memd does not list are taken too. */
export type Open<T> = T | (T & { [field: string]: unknown });

/** A fact with all that is known about it; it may have further fields. */
export type Account = {
  id: string;
  state: "active" | "suspended" | "archived";
  content: string;
  category: string;
  confidence: number;
  evidence: Array<Quote>;
  status: "active" | "superseded" | "archived";
  /** When a search last found it; null: never. */
  lastUsedAt: string | null;
  replaced: Array<OtherFact>;
  /** The versions before this one, the latest first. */
  earlier: Array<Version>;
  replacedBy?: OtherFact;
  withheld?: Array<{ [name: string]: unknown }>;
  [field: string]: unknown;
};

/** The memory of a doubtful fact that becomes a fact. */
export type Approval = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** Also where something else was said later, or its time is over. */
  anyway?: boolean | undefined;
};

/** An archived fact, which may have no id; it may have further fields. */
export type ArchivedFact = {
  content: string;
  status: "active" | "superseded" | "archived";
  /** When a search last found it; null: never. */
  lastUsedAt: string | null;
  id?: string;
  archivedAt?: string;
  /** As in `reason`, or a person's own word. */
  archiveReason?: string;
  archiveNote?: string;
  /** The id of the fact in its place. */
  replacedBy?: string;
  [field: string]: unknown;
};

export type ArchivedFacts = {
  facts: Array<ArchivedFact>;
  /** `after` of the next page; empty on the last. */
  next: string;
};

export type Audit = {
  /** How many facts the memory has. */
  facts: number;
  /** Findings by rule. */
  counts: { [name: string]: number };
  findings: Array<Finding>;
  /** `after` of the next page; empty on the last. */
  next: string;
};

export type Block = {
  /** The block, to be put into a prompt unchanged; empty when nothing is known. */
  text: string;
  /** Equal exactly when the text is equal; also the ETag. */
  version: string;
  /** Why the search went by words alone: the embedder failed, or no fact has a vector. Else absent. */
  words_only?: string;
};

/** One budget. `used`: tokens used today; None for the budget per user, which is not counted here. */
export type Budget = {
  tokens_per_day: number;
  used: number | null;
};

/** The dead letters to retry or to drop: those that every field given selects. */
export type ChosenLetters = {
  /** Letters with these ids; unknown ones are passed over. */
  ids?: ReadonlyArray<string> | undefined;
  code?: string | null | undefined;
  user_id?: string | null | undefined;
  /** All letters that the token names, where no other field selects any. */
  every?: boolean | undefined;
} & (
  | { ids: unknown }
  | { code: string }
  | { user_id: string }
  | { every: true }
);

/**
 * The figures of `memd status --cost`. `day`: in UTC, by the server's clock. `days`: those asked for, oldest first,
 * each day from the first one with any figure to today.
 */
export type Cost = {
  day: string;
  today: Array<ModelCost>;
  total: Array<ModelCost>;
  budgets: { [name: string]: Budget };
  days: Array<DayCost>;
};

/**
 * The use of one UTC day by model, without models that were not used. `facts`: added on it. `usd`: of the models
 * with a price, None if none has one; `usd_per_fact`: None without facts, or where a model that was used has no
 * price.
 */
export type DayCost = {
  day: string;
  models: Array<ModelCost>;
  facts: number;
  usd: number | null;
  usd_per_fact: number | null;
};

/** The memory of a doubtful fact that is dropped. */
export type Decision = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
};

/** The memory document; it may have further fields. */
export type Document = {
  userId: string;
  agentName: string;
  user: UserSummaries;
  history: HistorySummaries;
  facts: Array<Fact>;
  version?: string;
  revision?: number;
  lastUpdated?: string;
  archive?: Array<{ [name: string]: unknown }>;
  /** With `at`: it. Such a document has no revision and no archive. */
  asOf?: string;
  /** With `at`: why it may be incomplete. */
  missing?: Array<string>;
  [field: string]: unknown;
};

export type DoubtfulFacts = {
  facts: Array<Fact>;
};

export type Dropped = {
  dropped: number;
};

export type Explanation = {
  similarity: number;
  confidence: number;
  scope: number;
};

/** What import takes; it may have further fields. */
export type ExportOfMemd = {
  format: "memd";
  version: 1;
  memories: Array<{ [name: string]: unknown }>;
  [field: string]: unknown;
};

/** A fact; it may have further fields. */
export type Fact = {
  id: string;
  content: string;
  [field: string]: unknown;
};

/** The new content or category of a fact. */
export type FactEdit = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  content?: string | null | undefined;
  category?: string | null | undefined;
};

export type Facts = {
  facts: Array<ListedFact>;
  /** `after` of the next page; empty on the last. */
  next: string;
};

/** One thing that should not be in a memory. `text` never contains a secret; `fact_id` is empty for a summary. */
export type Finding = {
  rule: string;
  place: string;
  fact_id: string;
  detail: string;
  text: string;
};

/** The keys to make due now; without any field, all keys. */
export type Flush = {
  user_id?: string | null | undefined;
  agent_name?: string | null | undefined;
  thread_id?: string | null | undefined;
  /** Respond when every push accepted before has ended. */
  wait?: boolean | undefined;
  /** Wait at most this many seconds; capped by the server's `http.request_timeout_s`. */
  timeout_s?: number | undefined;
};

/** Counts of keys by outcome (stored, skipped, dead, unknown) or `waiting`, and whether the flush timed out. */
export type FlushResult = {
  counts: { [name: string]: number };
  timed_out: boolean;
  rationed: number;
  rationed_until: string | null;
};

/** The user to forget. */
export type Forget = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Only this agent's memory of the user. */
  agent_name?: string | null | undefined;
  /** Report what would be removed, and remove nothing. */
  dry_run?: boolean | undefined;
};

/**
 * The removed data (with a dry run: the data to remove) and the places that memd cannot reach. `pushes`: pending or
 * claimed in the inbox. `dead`: dead letters. `messages`: hashes in the tombstone. `complete` is False when the
 * server was out of reach: a worker does the rest when it is back. `known` is False when memd has no document, key,
 * dead letter or tombstone of the user: then nothing was done, and nothing was left.
 */
export type Forgotten = {
  pushes: number;
  dead: number;
  documents: number;
  files: number;
  messages: number;
  complete: boolean;
  unreachable: Array<string>;
  known: boolean;
  dry_run?: boolean;
};

export type Found = {
  fact: FoundFact;
  score: number;
  kind: "fact" | "excerpt" | "pending";
  /** A message not extracted yet: not verified. */
  pending: boolean;
  agent_name: string;
  explain?: Explanation;
};

/** Of kind fact it has `status` and `lastUsedAt`, which is before this search. */
export type FoundFact = {
  content: string;
  id?: string;
  status?: "active" | "superseded" | "archived";
  /** When a search last found it; null: never. */
  lastUsedAt?: string | null;
  [field: string]: unknown;
};

export type Health = {
  status: "ok";
  inbox: "ok" | "unavailable";
};

/**
 * One histogram, as Prometheus counts: `counts` has a row for each bound, with all that took at most so long.
 * `total`: all observations. `seconds`: their sum.
 */
export type Histogram = {
  counts: Array<Array<unknown>>;
  total: number;
  seconds: number;
};

export type HistorySummaries = {
  recentMonths?: Summary;
  earlierContext?: Summary;
  longTermBackground?: Summary;
};

/**
 * What one hour counted. `start`: by the server's clock, in UTC; the present hour's row is at most a second old.
 * `pushes`, `stored`, `skipped` and `dead` count pushes, as in `Status`; `dead` also those that were retried later.
 * `facts`: added. `tokens`: of all kinds. `pending`: keys at the hour's end; `most_pending`: the most in any
 * second. Both are None for an hour in which no scheduler ran; what it counted is in the next row that has them.
 */
export type Hour = {
  start: string;
  pushes: number;
  stored: number;
  skipped: number;
  dead: number;
  facts: number;
  model_calls: number;
  tokens: number;
  pending: number | null;
  most_pending: number | null;
};

export type Hours = {
  hours: Array<Hour>;
};

export type Id = {
  id: string;
};

/** An export to merge into a user's memories. */
export type Import = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Import into the memory of this agent. */
  agent_name?: string | null | undefined;
  /** auto: told by the document's form. */
  format?: "auto" | "memd" | "deerflow" | "mem0" | "langgraph" | "redis" | "memobase" | "chatgpt" | "claude" | undefined;
  /** Of more facts than `apply.max_facts` has room for, import the best; else 422 E_IMPORT_FULL. */
  best?: boolean | undefined;
  /** Push the conversations of a chat export, too. */
  conversations?: boolean | undefined;
  /** Report what would be imported, and change nothing. */
  dry_run?: boolean | undefined;
  /** The output of export, or what another system exports, unchanged: docs/moving.md lists them. */
  document: ExportOfMemd | MemoryOfDeerFlow | MemoriesOfMem0 | ReadonlyArray<Open<{
    memory?: string | undefined;
  }>>;
};

/**
 * The result of an import, or of its dry run: the detected format, and the result for each memory. `tasks`: the
 * result for each agent whose todo lists or tasks the import holds. `sessions`: how many were added. `threads`:
 * conversations that were pushed, with how many `messages` and about how many `tokens`; the model extracts what is
 * worth remembering from them. `notes`: what to know, such as that a page is missing.
 */
export type Imported = {
  format: "memd" | "deerflow" | "mem0" | "langgraph" | "redis" | "memobase" | "chatgpt" | "claude";
  memories: Array<ImportedMemory>;
  tasks: Array<ImportedTasks>;
  sessions: number;
  threads: number;
  messages: number;
  tokens: number;
  notes: Array<string>;
  dry_run?: boolean;
};

/**
 * The import into one memory. `added`: the ids of facts, `contents`: their sentences; `known`: facts it had.
 * `summaries`, `archived`: the numbers imported; `refused`: the other items, counted by reason.
 */
export type ImportedMemory = {
  agent_name: string;
  added: Array<string>;
  contents: Array<string>;
  known: number;
  summaries: number;
  archived: number;
  refused: { [name: string]: number };
  changed: boolean;
  turns: number;
};

/** The import for one agent. `known`: lists and tasks that were there; `full`: those that found no room. */
export type ImportedTasks = {
  agent_name: string;
  lists: number;
  tasks: number;
  known: number;
  full: number;
};

/** The fields of `InjectQuery` in a body, for queries that should not appear in a URL. */
export type Inject = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  max_tokens?: number | null | undefined;
  /** Facts that match this text come first. */
  query?: string | null | undefined;
  /** The conversation that asks: its own facts are shown too, and its last turns give no excerpts. */
  thread_id?: string | null | undefined;
  /** A project: what its members share is shown too, if the user is one, and what the user alone knows of it. */
  project_id?: string | null | undefined;
  /** Include messages from which no facts have been extracted yet. */
  include_pending?: boolean | undefined;
};

/** One dead letter. `origin`: the raw list of a push that was never taken in; its letter has no ids. */
export type Letter = {
  id: string;
  code: string;
  error: string;
  died_at: string;
  attempts: number;
  thread_id: string | null;
  user_id: string | null;
  agent_name: string | null;
  origin: string | null;
};

/** A dead letter. `origin`: the raw list of a push that was never taken in, which has no ids. */
export type LetterContent = {
  id: string;
  code: string;
  error: string;
  died_at: string;
  attempts: number;
  thread_id: string | null;
  user_id: string | null;
  agent_name: string | null;
  origin: string | null;
  /** With the scope `said`. */
  messages?: Array<{ [name: string]: unknown }>;
  /** With the scope `said`: the raw push. */
  raw?: string | null;
};

/** Of the letters that the token may see. `codes`: how many of the newest `looked_at` have which. */
export type Letters = {
  letters: Array<Letter>;
  /** `after` of the next page; empty on the last. */
  next: string;
  total: number;
  codes: { [name: string]: number };
  looked_at: number;
};

/** A fact, or an archived one, which may have no id; it may have further fields. */
export type ListedFact = {
  content: string;
  status: "active" | "superseded" | "archived";
  /** When a search last found it; null: never. */
  lastUsedAt: string | null;
  id?: string;
  [field: string]: unknown;
};

export type ListedProject = {
  project_id: string;
  app: string;
  role: string;
  members: number;
  facts: number;
  changed_at: string;
};

export type Member = {
  user_id: string;
  role: "owner" | "admin" | "editor" | "viewer";
};

/** A member with a role. */
export type MemberRole = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  member: string;
  /** Each includes the rights of those after it: owner, admin, editor, viewer. */
  role: "owner" | "admin" | "editor" | "viewer";
};

export type Members = {
  members: Array<Member>;
};

export type MemoriesOfMem0 = Open<{
  results: ReadonlyArray<Open<{
    memory?: string | undefined;
  }>>;
}>;

export type MemoryOfDeerFlow = Open<{
  facts: ReadonlyArray<unknown>;
}>;

/**
 * Of one model: calls made, those that failed too; requests answered in batches; tokens by kind; failures by code.
 * Calls and failures are counted since build 28 of the inbox, tokens and batches since before.
 */
export type ModelCalls = {
  calls: number;
  batch_calls: number;
  tokens: { [name: string]: number };
  failures: { [name: string]: number };
};

/** The use of one model. `calls` and tokens include the batched ones; `usd` is None if no price is known. */
export type ModelCost = {
  model: string;
  calls: number;
  batch_calls: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  usd: number | null;
};

export type Moment = {
  at: string;
  category: string;
  content: string;
  reason: string;
  by: string;
  fact_id: string;
  ended: string;
};

/** A fact to add by hand. */
export type NewFact = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** What is to be remembered: one sentence. */
  content: string;
  category?: string | null | undefined;
};

/** A fact to add in the name of an agent. */
export type NewNote = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** What is to be remembered: one sentence. */
  content: string;
  category?: string | null | undefined;
};

/** A project to make: `user_id` is its first owner. */
export type NewProject = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
};

/** A fact to add to a project by hand. */
export type NewProjectFact = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  /** What is to be remembered: one sentence. */
  content: string;
  category?: string | null | undefined;
};

/** A project, and who asks. */
export type OneProject = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
};

/** Another fact; `content` is null when the archive no longer has it. */
export type OtherFact = {
  id: string;
  content: string | null;
  [field: string]: unknown;
};

/**
 * The state of a push. A push that was processed in parts reports the worst state, and counts all of them. A
 * pending push has the `reason` "budget" while it waits for a budget, until `due_at`.
 */
export type Outcome = {
  state: "pending" | "claimed" | "stored" | "skipped" | "dead" | "unknown";
  reason: string | null;
  fact_ids: Array<string>;
  counts: { [name: string]: number };
  refused: { [name: string]: number };
  not_kept: { [name: string]: number };
  project: { [name: string]: unknown };
  due_at: string | null;
};

/**
 * One key that has not ended. `turns`, `tokens`: of its messages. `due_at`: when it may be claimed, if known.
 * `state`: waiting (for its quiet time), due, parked (its bucket is busy), rationed (a budget is used up), batched
 * (no reply of its batch yet), claimed. `claimed_by`: the worker, as host:pid. `due_in_s` is 0 for a key that is
 * due.
 */
export type PendingKey = {
  user_id: string;
  agent_name: string;
  thread_id: string;
  state: "waiting" | "due" | "parked" | "rationed" | "batched" | "claimed";
  turns: number;
  tokens: number;
  first_push: string | null;
  due_at: string | null;
  due_in_s: number | null;
  claimed_by: string | null;
};

/** One page of keys; `next` is the cursor of the next one, empty on the last. */
export type PendingPage = {
  keys: Array<PendingKey>;
  next: string;
};

/** RFC 9457 problem details, with memd's code and, where they apply, field and limit. */
export type Problem = {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  field?: string;
  limit?: number;
};

export type Profile = {
  profile: { [name: string]: { [name: string]: unknown } };
};

export type ProfileFieldName = {
  field: string;
};

/** A field of a profile to set by hand. */
export type ProfileSet = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** docs/editing.md says what each takes. */
  field: "username" | "profession" | "background" | "language_preference" | "languagePreference" | "communication_style" | "communicationStyle" | "response_format" | "responseFormat" | "characteristics" | "expertise_areas" | "expertiseAreas" | "programming_languages" | "programmingLanguages" | "frequently_used_tools" | "frequentlyUsedTools" | "content";
  /** A text; a list of texts where the field is a list. */
  value: string | ReadonlyArray<string>;
} & (
  | { field: "username"; value: string }
  | { field: "profession"; value: string }
  | { field: "background"; value: string }
  | { field: "language_preference" | "languagePreference"; value: "en" | "zh-CN" | "ja" }
  | { field: "communication_style" | "communicationStyle"; value: "concise" | "detailed" | "technical" }
  | { field: "response_format" | "responseFormat"; value: "markdown" | "plain" | "code" }
  | { field: "characteristics"; value: string }
  | { field: "expertise_areas" | "expertiseAreas"; value: ReadonlyArray<string> }
  | { field: "programming_languages" | "programmingLanguages"; value: ReadonlyArray<string> }
  | { field: "frequently_used_tools" | "frequentlyUsedTools"; value: ReadonlyArray<string> }
  | { field: "content"; value: string }
);

export type ProjectAccount = {
  fact: Fact;
  evidence: Array<{ [name: string]: unknown }>;
  disputes: Array<Fact>;
  replaced: Array<Fact>;
};

/** The new content, category or visibility of a fact. */
export type ProjectFactEdit = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  content?: string | null | undefined;
  category?: string | null | undefined;
  /** public: any token of the project's app may read it. */
  visibility?: "members" | "public" | null | undefined;
};

/** A field of a project's profile to set. */
export type ProjectProfileSet = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  /** docs/editing.md says what each takes. */
  field: "project_goal" | "projectGoal" | "current_phase" | "currentPhase" | "tech_stack" | "techStack" | "constraints" | "team_conventions" | "teamConventions";
  /** A text; a list of texts where the field is a list. */
  value: string | ReadonlyArray<string>;
} & (
  | { field: "project_goal" | "projectGoal"; value: string }
  | { field: "current_phase" | "currentPhase"; value: string }
  | { field: "tech_stack" | "techStack"; value: ReadonlyArray<string> }
  | { field: "constraints"; value: ReadonlyArray<string> }
  | { field: "team_conventions" | "teamConventions"; value: ReadonlyArray<string> }
);

export type Projects = {
  projects: Array<ListedProject>;
};

/** A push, in the format of the raw list; see docs/wire.md. */
export type Push = {
  /** 3 means version 3, without traceparent; 2 also without project_id and source; 1 also without names. */
  v?: 4 | undefined;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  thread_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /**
   * What the user is called. A message whose name is neither this nor user_id is somebody else's, and proves only
   * facts about that person.
   */
  user_name?: string | null | undefined;
  agent_name?: string | null | undefined;
  /** The project that these messages are about. A message keeps what its first push said. */
  project_id?: string | null | undefined;
  /** What the words come from. */
  source?: {
    kind: "user" | "ai" | "knowledge_base" | "project_resource";
    id?: string | null | undefined;
  } | null | undefined;
  /**
   * Of what filtering leaves, the newest 1000 messages within 1048576 bytes are kept; the receipt counts the others
   * as over_limit.
   */
  messages: ReadonlyArray<Open<{
    content?: string | ReadonlyArray<unknown> | null | undefined;
    parts?: ReadonlyArray<unknown> | null | undefined;
    id?: string | number | null | undefined;
    created_at?: string | number | null | undefined;
  } & (
    | { role: string }
    | { role: string; name?: string | null | undefined }
    | { content: string | ReadonlyArray<unknown> | null; role: string; name?: string | null | undefined }
    | { parts: ReadonlyArray<unknown> | null; role: string; name?: string | null | undefined }
    | { type: string; role?: null | "" | undefined }
    | { type: string; role?: null | "" | undefined; name?: string | null | undefined }
    | { content: string | ReadonlyArray<unknown> | null; type: string; role?: null | "" | undefined; name?: string | null | undefined }
    | { parts: ReadonlyArray<unknown> | null; type: string; role?: null | "" | undefined; name?: string | null | undefined }
  )> | {
    type: string;
    /** A message in a shape that docs/wire.md lists; fields that are not listed are ignored. */
    data: Open<{
      content?: string | ReadonlyArray<unknown> | null | undefined;
      parts?: ReadonlyArray<unknown> | null | undefined;
      id?: string | number | null | undefined;
      created_at?: string | number | null | undefined;
    } & (
      | { role: string }
      | { role: string; name?: string | null | undefined }
      | { content: string | ReadonlyArray<unknown> | null; role: string; name?: string | null | undefined }
      | { parts: ReadonlyArray<unknown> | null; role: string; name?: string | null | undefined }
      | { type: string; role: null | "" }
      | { type: string; role: null | ""; name?: string | null | undefined }
      | { content: string | ReadonlyArray<unknown> | null; type: string; role: null | ""; name?: string | null | undefined }
      | { parts: ReadonlyArray<unknown> | null; type: string; role: null | ""; name?: string | null | undefined }
    )>;
  }>;
  /** What the app noticed in the last user message: hints to the model, beside memd's own. */
  signals?: ReadonlyArray<"correction" | "reinforcement" | "preference" | "identity" | "goal" | "decision"> | null | undefined;
  /** Due at once. */
  now?: boolean | undefined;
  /**
   * The trace that the push belongs to (W3C Trace Context), also as a header. What has not its form is left out.
   */
  traceparent?: string | null | undefined;
};

export type Quote = {
  quote?: string;
  thread?: string;
  message?: string;
  /** The turns around the quote, with the scope `said`, as far as they are kept. */
  turns?: Array<Turn>;
  [field: string]: unknown;
};

export type Readiness = {
  status: "ok";
  inbox: "ok";
  store: "ok";
};

/**
 * The result of a push. `status`: queued, merged, unconfirmed (taken, but too few replicas had it in time), skipped
 * (see `reason`), disabled. `messages`: how many were kept. `dropped`: turns by the reason why they were not, or
 * (`truncated`) not whole. `cut`: blocks cut out of turns, by kind. `wire`: the version of the wire format that
 * this door takes.
 */
export type Receipt = {
  status: "queued" | "merged" | "unconfirmed" | "skipped" | "disabled";
  id: string | null;
  due_at: string | null;
  reason: string | null;
  messages: number;
  dropped: { [name: string]: number };
  cut: { [name: string]: number };
  wire: number;
};

/** The memory of a suspended fact that is taken back. */
export type Restoration = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
};

export type Retried = {
  retried: number;
  stay: number;
};

/** A search. */
export type Search = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** Words or a question. One that is nothing but a period brings what was said then. */
  query: string;
  /** Return at most this many facts. */
  limit?: number | undefined;
  /** Only facts of these categories; aliases count. */
  categories?: ReadonlyArray<string> | undefined;
  /** Only facts of these scopes. */
  scopes?: ReadonlyArray<"user" | "project" | "session"> | undefined;
  /** Only facts that this user brought into a project. */
  member?: string | null | undefined;
  /** Only facts of this time or later; `by` says which time. */
  since?: string | null | undefined;
  /** Only facts before this time. */
  until?: string | null | undefined;
  /** The time of a fact that `since` and `until` mean. learned: it was added or last changed. */
  by?: "learned" | "said" | undefined;
  /** The conversation that asks: its own facts are shown too, and its last turns give no excerpts. */
  thread_id?: string | null | undefined;
  /** A project: what its members share is shown too, if the user is one, and what the user alone knows of it. */
  project_id?: string | null | undefined;
  /** Include messages from which no facts have been extracted yet. */
  include_pending?: boolean | undefined;
  /** Include the factors of each score. */
  explain?: boolean | undefined;
};

export type SearchResult = {
  found: Array<Found>;
  /** Why the search went by words alone: the embedder failed, or no fact has a vector. Else absent. */
  words_only?: string;
};

/** The figures of `memd status`. `pushes`, `stored`, `skipped` and `dead_so_far` count pushes. */
export type Status = {
  pending: number;
  due: number;
  parked: number;
  batched: number;
  batches: number;
  rationed: number;
  rationed_until: string | null;
  claimed: number;
  dead: number;
  raw: { [name: string]: number };
  raw_letters: { [name: string]: number };
  unread: Array<string>;
  oldest_waiting_s: number | null;
  paused: Array<{ [name: string]: unknown }>;
  workers: Array<{ [name: string]: string }>;
  waiting_parts: Array<string>;
  discarded: { [name: string]: number };
  pushes: number;
  stored: number;
  skipped: number;
  dead_so_far: number;
  by_reason: { [name: string]: number };
  dropped: { [name: string]: number };
  cut: { [name: string]: number };
  refused: { [name: string]: number };
  redacted: { [name: string]: number };
  not_kept: { [name: string]: number };
  mended: { [name: string]: number };
  facts: { [name: string]: number };
  events_lost: number;
  durations: { [name: string]: Histogram };
  models: { [name: string]: ModelCalls };
  usage: { [name: string]: number };
  server: { [name: string]: unknown };
  wire: number;
};

export type Summary = {
  summary?: string;
  updatedAt?: string;
};

export type Timeline = {
  timeline: Array<Moment>;
  /** `after` of the next page; empty on the last. */
  next: string;
};

export type Turn = {
  role: string;
  text: string;
  saidAt: string;
};

/** One page of users; `next` is the cursor of the next one, empty on the last. */
export type UserPage = {
  users: Array<UserRow>;
  next: string;
};

/**
 * One user. `agents`: the agents with a memory of the user. `facts`: in all of the user's memories; None when a
 * document is damaged. `pending`: keys pending or claimed; None when the server is out of reach.
 */
export type UserRow = {
  user_id: string;
  agents: Array<string>;
  facts: number | null;
  pending: number | null;
  changed_at: string | null;
};

export type UserSummaries = {
  workContext?: Summary;
  personalContext?: Summary;
  topOfMind?: Summary;
};

export type Version = {
  state: "active" | "suspended" | "archived";
  content: string;
  category: string;
  confidence: number;
  evidence: Array<Quote>;
  status: "active" | "superseded" | "archived";
  [field: string]: unknown;
};

export type WithheldEntries = {
  withheld: Array<WithheldEntry>;
};

export type WithheldEntry = {
  /** The id of the fact. */
  fact: string;
  /** What was to become of it. */
  wanted?: string;
  /** Why memd did not follow. */
  why?: string | null;
  at?: string | null;
  source?: string | null;
  /** Of a suspended fact. */
  content?: string;
  [field: string]: unknown;
};

export type InjectInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** Budget of the block, in estimated tokens. */
  max_tokens?: number | undefined;
  /** Facts that match this text come first. */
  query?: string | undefined;
  /** The conversation that asks: its own facts are shown too, and its last turns give no excerpts. */
  thread_id?: string | undefined;
  /** A project: what its members share is shown too, if the user is one, and what the user alone knows of it. */
  project_id?: string | undefined;
  /** Include messages from which no facts have been extracted yet. */
  include_pending?: boolean | undefined;
};

export type InjectOutput = Block;

export type InjectForInput = Inject;

export type InjectForOutput = Block;

export type SearchInput = Search;

export type SearchOutput = SearchResult;

export type MemoryInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** A conversation, whose own facts are among the others. */
  thread_id?: string | undefined;
  /** The memory as it was believed then; a day means its first moment. */
  at?: string | undefined;
};

export type MemoryOutput = Document;

export type PushInput = Push;

export type PushOutput = Receipt;

export type ReceiptInput = {
  /** `id` of the push's response. */
  receipt_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
};

export type ReceiptOutput = Outcome;

export type PendingInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Rows of a page, at most. */
  limit?: number | undefined;
};

export type PendingOutput = PendingPage;

export type FlushInput = Flush;

export type FlushOutput = FlushResult;

export type FactsInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** Only facts of this category; aliases count. */
  category?: string | undefined;
  /** Only facts of this scope. */
  scope?: "user" | "project" | "session" | undefined;
  /** superseded: archived for another fact in its place. archived: for any other reason. */
  status?: "active" | "superseded" | "archived" | "all" | undefined;
  /** Only facts that this user brought into a project. */
  member?: string | undefined;
  /** Only facts of this time or later; `by` says which time. */
  since?: string | undefined;
  /** Only facts before this time. */
  until?: string | undefined;
  /** The time of a fact that `since` and `until` mean. learned: it was added or last changed. */
  by?: "learned" | "said" | undefined;
  /** A conversation, whose own facts are listed, too. */
  thread_id?: string | undefined;
  /** A project: what the user alone knows of it is listed, too. */
  project_id?: string | undefined;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Rows of a page, at most. */
  limit?: number | undefined;
};

export type FactsOutput = Facts;

export type AddFactInput = NewFact;

export type AddFactOutput = Id;

export type WhyInput = {
  /** `id` of the fact. */
  fact_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** The conversation of a fact that holds only there. */
  thread_id?: string | undefined;
  /** The project of a fact that holds only there. */
  project_id?: string | undefined;
};

export type WhyOutput = Account;

export type EditFactInput = {
  /** `id` of the fact. */
  fact_id: string;
} & FactEdit;

export type EditFactOutput = Id;

export type RemoveFactInput = {
  /** `id` of the fact. */
  fact_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
};

export type RemoveFactOutput = undefined;

export type ArchiveInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** Only facts that were archived for this reason. */
  reason?: "replaced" | "retired" | "evicted" | "expired" | "stale" | "merged" | "edited" | undefined;
  /** Only facts of this category; aliases count. */
  category?: string | undefined;
  /** Only facts of this scope. */
  scope?: "user" | "project" | "session" | undefined;
  /** Only facts that this user brought into a project. */
  member?: string | undefined;
  /** Only facts of this time or later; `by` says which time. */
  since?: string | undefined;
  /** Only facts before this time. */
  until?: string | undefined;
  /** The time of a fact that `since` and `until` mean. learned: it was added or last changed. */
  by?: "learned" | "said" | undefined;
  /** A conversation, whose own facts are listed, too. */
  thread_id?: string | undefined;
  /** A project: what the user alone knew of it is listed, too. */
  project_id?: string | undefined;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Rows of a page, at most. */
  limit?: number | undefined;
};

export type ArchiveOutput = ArchivedFacts;

export type AddNoteInput = NewNote;

export type AddNoteOutput = Id;

export type ProfileInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
};

export type ProfileOutput = Profile;

export type SetProfileInput = ProfileSet;

export type SetProfileOutput = ProfileFieldName;

export type UnsetProfileInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** The name of a field, in either way of writing it. */
  field: "username" | "profession" | "background" | "language_preference" | "languagePreference" | "communication_style" | "communicationStyle" | "response_format" | "responseFormat" | "characteristics" | "expertise_areas" | "expertiseAreas" | "programming_languages" | "programmingLanguages" | "frequently_used_tools" | "frequentlyUsedTools" | "content";
};

export type UnsetProfileOutput = undefined;

export type DoubtfulInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
};

export type DoubtfulOutput = DoubtfulFacts;

export type ApproveFactInput = {
  /** `id` of the fact. */
  fact_id: string;
} & Approval;

export type ApproveFactOutput = Id;

export type DropFactInput = {
  /** `id` of the fact. */
  fact_id: string;
} & Decision;

export type DropFactOutput = undefined;

export type WithheldInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
};

export type WithheldOutput = WithheldEntries;

export type RestoreFactInput = {
  /** `id` of the fact. */
  fact_id: string;
} & Restoration;

export type RestoreFactOutput = Id;

export type ProjectsInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
};

export type ProjectsOutput = Projects;

export type MakeProjectInput = NewProject;

export type MakeProjectOutput = Id;

export type CloseProjectInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
};

export type CloseProjectOutput = undefined;

export type ProjectMembersInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
};

export type ProjectMembersOutput = Members;

export type SetProjectMemberInput = MemberRole;

export type SetProjectMemberOutput = Member;

export type RemoveProjectMemberInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  member: string;
};

export type RemoveProjectMemberOutput = undefined;

export type ProjectProfileInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
};

export type ProjectProfileOutput = Profile;

export type SetProjectProfileInput = ProjectProfileSet;

export type SetProjectProfileOutput = ProfileFieldName;

export type UnsetProjectProfileInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  /** The name of a field, in either way of writing it. */
  field: "project_goal" | "projectGoal" | "current_phase" | "currentPhase" | "tech_stack" | "techStack" | "constraints" | "team_conventions" | "teamConventions";
};

export type UnsetProjectProfileOutput = undefined;

export type ProjectTimelineInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  /** Only what was said at this time or later. */
  since?: string | undefined;
  /** Only what was said before this time. */
  until?: string | undefined;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Rows of a page, at most. */
  limit?: number | undefined;
};

export type ProjectTimelineOutput = Timeline;

export type ProjectFactsInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
  /** Only facts of this category; aliases count. */
  category?: string | undefined;
  /** superseded: archived for another fact in its place. archived: for any other reason. */
  status?: "active" | "superseded" | "archived" | "all" | undefined;
  /** Only facts that this user brought into a project. */
  member?: string | undefined;
  /** Only facts of this time or later; `by` says which time. */
  since?: string | undefined;
  /** Only facts before this time. */
  until?: string | undefined;
  /** The time of a fact that `since` and `until` mean. learned: it was added or last changed. */
  by?: "learned" | "said" | undefined;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Rows of a page, at most. */
  limit?: number | undefined;
};

export type ProjectFactsOutput = Facts;

export type AddProjectFactInput = NewProjectFact;

export type AddProjectFactOutput = Id;

export type WhyProjectFactInput = {
  /** `id` of the fact. */
  fact_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
};

export type WhyProjectFactOutput = ProjectAccount;

export type EditProjectFactInput = {
  /** `id` of the fact. */
  fact_id: string;
} & ProjectFactEdit;

export type EditProjectFactOutput = Id;

export type RemoveProjectFactInput = {
  /** `id` of the fact. */
  fact_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  project_id: string;
};

export type RemoveProjectFactOutput = undefined;

export type PublishFactInput = {
  /** `id` of the fact. */
  fact_id: string;
} & OneProject;

export type PublishFactOutput = Id;

export type HideFactInput = {
  /** `id` of the fact. */
  fact_id: string;
} & OneProject;

export type HideFactOutput = Id;

export type DecideDisputeInput = {
  /** `id` of the fact. */
  fact_id: string;
} & OneProject;

export type DecideDisputeOutput = Id;

export type UsersInput = {
  /** changed: the user that changed last comes first. */
  by?: "id" | "changed" | undefined;
  /** Only users whose id has this text in it, in any case. */
  find?: string | undefined;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Rows of a page, at most. */
  limit?: number | undefined;
};

export type UsersOutput = UserPage;

export type ExportInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** Only this agent's memory; every agent's when absent. */
  agent_name?: string | undefined;
};

export type ExportOutput = ExportOfMemd;

export type ImportInput = Import;

export type ImportOutput = Imported;

export type ForgetInput = Forget;

export type ForgetOutput = Forgotten;

export type AuditInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id: string;
  /** The agent whose memory of the user is meant; empty: the memory that is no agent's own. */
  agent_name?: string | undefined;
  /** Only findings of this rule. */
  rule?: "junk" | "duplicate" | "echo" | "secret" | "stale" | "contradiction" | "withheld" | "unevidenced" | "instruction" | "markup" | "malformed" | undefined;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Rows of a page, at most. */
  limit?: number | undefined;
};

export type AuditOutput = Audit;

export type DeadInput = {
  /** Opaque; 1 to 256 bytes of UTF-8, without control, bidi, tag or non-characters. */
  user_id?: string | undefined;
  /** Letters with this code. */
  code?: string | undefined;
  /** `next` of the page before; empty for the first. */
  after?: string | undefined;
  /** Letters of a page, at most. */
  limit?: number | undefined;
};

export type DeadOutput = Letters;

export type RetryDeadInput = ChosenLetters;

export type RetryDeadOutput = Retried;

export type DropDeadInput = ChosenLetters;

export type DropDeadOutput = Dropped;

export type DeadLetterInput = {
  /** `id` of the letter, from the list. */
  letter_id: string;
};

export type DeadLetterOutput = LetterContent;

export type StatusInput = Record<string, never>;

export type StatusOutput = Status;

export type CostInput = {
  /** Also each of the last days, today included. */
  days?: number | undefined;
};

export type CostOutput = Cost;

export type HoursInput = Record<string, never>;

export type HoursOutput = Hours;

export type MetricsInput = Record<string, never>;

export type MetricsOutput = string;

export type HealthInput = Record<string, never>;

export type HealthOutput = Health;

export type ReadyInput = Record<string, never>;

export type ReadyOutput = Readiness;

export type OpenapiInput = Record<string, never>;

export type OpenapiOutput = { [name: string]: unknown };

export type DocsInput = Record<string, never>;

export type DocsOutput = string;

/** Every operation: what it takes, and what it returns. */
export type Operations = {
  /**
   * The block of memory for the next prompt. Empty when nothing is known. The same memory gives the same bytes and
   * the same ETag. Scope: read. `GET /v1/inject`
   */
  inject: { input: InjectInput; output: InjectOutput };
  /**
   * The same, with the fields in a body. For queries that must not appear in an address, which proxies log. Scope:
   * read. `POST /v1/inject`
   */
  injectFor: { input: InjectForInput; output: InjectForOutput };
  /**
   * The facts that match a query, best first. With the scope `said` also excerpts of what was said. score = 0.5
   * similarity + 0.3 confidence + 0.2 scope. Scope: read. `POST /v1/search`
   */
  search: { input: SearchInput; output: SearchOutput };
  /**
   * The memory document of a user. Empty when nothing is known. Without the ledger and the facts of other
   * conversations and of projects, which only an export has. With `at` the memory as it was believed then, in its
   * facts and summaries, and in `missing` why that may be incomplete. Scope: read. `GET /v1/memory`
   */
  memory: { input: MemoryInput; output: MemoryOutput };
  /**
   * Push a conversation. 202: accepted. 200: nothing to do (skipped, disabled). The same push again only moves the
   * due time. Scope: write. `POST /v1/push`
   */
  push: { input: PushInput; output: PushOutput };
  /**
   * The state of a push. pending, claimed, or its end: stored, skipped or dead, with the reason and what was
   * refused. Ends are kept for a while; then the receipt is unknown. Scope: read. `GET /v1/receipts/{receipt_id}`
   */
  receipt: { input: ReceiptInput; output: ReceiptOutput };
  /**
   * The keys of a user that have not ended, a page at a time. State, turns, tokens and times, never a text. Only
   * threads of the token's app: a page may hold fewer keys than asked for, or none, and still have a `next`. Scope:
   * read. `GET /v1/pending`
   */
  pending: { input: PendingInput; output: PendingOutput };
  /**
   * Make pending keys due now. Without `user_id`: the keys of all users, which needs a token for all users. Scope:
   * write. `POST /v1/flush`
   */
  flush: { input: FlushInput; output: FlushOutput };
  /**
   * The facts of a memory. Oldest first; archived ones, which only another `status` than active brings, come last,
   * the latest last. No document stores `status` and `lastUsedAt`. A list is no reading. Scope: read. `GET
   * /v1/facts`
   */
  facts: { input: FactsInput; output: FactsOutput };
  /**
   * Add a fact by hand. A person's word, which only markup and secrets keep out. The model neither changes nor
   * evicts it. A fact that already says the same becomes one added by hand. Scope: person. `POST /v1/facts`
   */
  addFact: { input: AddFactInput; output: AddFactOutput };
  /**
   * Where a fact comes from. Its quotes, times and model, what it replaced and what replaced it, its earlier
   * versions. Archived facts too. The turns around a quote only with the scope `said`. Scope: read. `GET
   * /v1/facts/{fact_id}`
   */
  why: { input: WhyInput; output: WhyOutput };
  /**
   * Change a fact's content, its category, or both. The archive keeps the earlier version. Scope: person. `PATCH
   * /v1/facts/{fact_id}`
   */
  editFact: { input: EditFactInput; output: EditFactOutput };
  /**
   * Remove a fact for good. No conversation brings it back; only adding it by hand does. Scope: person. `DELETE
   * /v1/facts/{fact_id}`
   */
  removeFact: { input: RemoveFactInput; output: RemoveFactOutput };
  /**
   * The archived facts of a memory, and why each was archived. The latest last. replaced, merged and edited facts
   * have another one in their place; retired, expired, stale and evicted ones have none. The archive has a cap
   * (`apply.archive_cap`). Scope: read. `GET /v1/archive`
   */
  archive: { input: ArchiveInput; output: ArchiveOutput };
  /**
   * Add a fact in the name of an agent. An agent's word: it passes the gates, evicts nothing, and counts less than
   * the user's. Scope: write. `POST /v1/notes`
   */
  addNote: { input: AddNoteInput; output: AddNoteOutput };
  /**
   * The user's profile, with which every block begins. By field its value, when and by whom it was set (manual,
   * model), and the facts it rests on. Scope: read. `GET /v1/profile`
   */
  profile: { input: ProfileInput; output: ProfileOutput };
  /**
   * Set a field of the profile by hand. No model overwrites it. `content` has the user's own instructions. Scope:
   * person. `PUT /v1/profile`
   */
  setProfile: { input: SetProfileInput; output: SetProfileOutput };
  /** Take a field out of the profile. A model may fill it again. Scope: person. `DELETE /v1/profile` */
  unsetProfile: { input: UnsetProfileInput; output: UnsetProfileOutput };
  /**
   * The facts that a person has to decide on. For people: no prompt may have them. `doubtfulWhy` is authority,
   * support or sensitive. Scope: read. `GET /v1/doubtful`
   */
  doubtful: { input: DoubtfulInput; output: DoubtfulOutput };
  /**
   * Make a doubtful fact a fact of the memory. It keeps its evidence and its time, and replaces what it was to
   * replace. 422 E_SUPERSEDED: something else was said later; `anyway` approves it all the same. Scope: person.
   * `POST /v1/doubtful/{fact_id}/approve`
   */
  approveFact: { input: ApproveFactInput; output: ApproveFactOutput };
  /**
   * Take a doubtful fact out for good. No conversation brings it back. Scope: person. `POST
   * /v1/doubtful/{fact_id}/drop`
   */
  dropFact: { input: DropFactInput; output: DropFactOutput };
  /**
   * What is held back until a person decides. `wanted` forgotten: a suspended fact, which the user may have asked
   * to forget; restore or remove it. Any other: the end of a fact that memd did not follow; edit or remove it, or
   * leave it. Scope: person. `GET /v1/withheld`
   */
  withheld: { input: WithheldInput; output: WithheldOutput };
  /**
   * Take a suspended fact back. It is injected and found again. To forget it for good, remove the fact. Scope:
   * person. `POST /v1/withheld/{fact_id}/restore`
   */
  restoreFact: { input: RestoreFactInput; output: RestoreFactOutput };
  /**
   * The projects of a user. Those in which the user is a member, of the token's app, with the user's role in each.
   * Scope: read. `GET /v1/projects`
   */
  projects: { input: ProjectsInput; output: ProjectsOutput };
  /**
   * Make a project of the token's app. Its id is never used again. `user_id` is the first owner. Scope: admin.
   * `POST /v1/projects`
   */
  makeProject: { input: MakeProjectInput; output: MakeProjectOutput };
  /**
   * Close a project for good. Only an owner may. Nothing is left but that the id was used. Scope: person. `DELETE
   * /v1/projects`
   */
  closeProject: { input: CloseProjectInput; output: CloseProjectOutput };
  /**
   * The members of a project. With their roles: owner, admin, editor, viewer. Every member may ask. Scope: read.
   * `GET /v1/projects/members`
   */
  projectMembers: { input: ProjectMembersInput; output: ProjectMembersOutput };
  /**
   * Add a member, or give one another role. Owners and admins may; only owners make and unmake owners, and one
   * always stays. Scope: person. `PUT /v1/projects/members`
   */
  setProjectMember: { input: SetProjectMemberInput; output: SetProjectMemberOutput };
  /**
   * Remove a member, who loses access at once. What the member said to the project stays. Scope: person. `DELETE
   * /v1/projects/members`
   */
  removeProjectMember: { input: RemoveProjectMemberInput; output: RemoveProjectMemberOutput };
  /**
   * A project's profile, with its key decisions. By field its value, when it was set and by whom. Blocks that name
   * the project begin with it. Scope: read. `GET /v1/projects/profile`
   */
  projectProfile: { input: ProjectProfileInput; output: ProjectProfileOutput };
  /** Set a field of a project's profile. Owners and admins may. Scope: person. `PUT /v1/projects/profile` */
  setProjectProfile: { input: SetProjectProfileInput; output: SetProjectProfileOutput };
  /**
   * Take a field out of a project's profile. Owners and admins may. Scope: person. `DELETE /v1/projects/profile`
   */
  unsetProjectProfile: { input: UnsetProjectProfileInput; output: UnsetProjectProfileOutput };
  /**
   * What was decided and happened, by day. Decisions, events and goals that the user may read, oldest first, with
   * their reasons. Scope: read. `GET /v1/projects/timeline`
   */
  projectTimeline: { input: ProjectTimelineInput; output: ProjectTimelineOutput };
  /**
   * The facts of a project that the user may read. With what the user alone knows of it, which has the visibility
   * `owner_only`. Scope: read. `GET /v1/projects/facts`
   */
  projectFacts: { input: ProjectFactsInput; output: ProjectFactsOutput };
  /**
   * Add a fact by hand. In the name of the user, who must be an editor, an admin or an owner. All members read it.
   * Scope: person. `POST /v1/projects/facts`
   */
  addProjectFact: { input: AddProjectFactInput; output: AddProjectFactOutput };
  /**
   * Who said a fact, in which words, and what disputes it. Turns only to who said them, with the scope `said`.
   * Scope: read. `GET /v1/projects/facts/{fact_id}`
   */
  whyProjectFact: { input: WhyProjectFactInput; output: WhyProjectFactOutput };
  /**
   * Change a fact's words, category or visibility. Editors change their own facts, owners and admins all. The
   * archive keeps the earlier version. Scope: person. `PATCH /v1/projects/facts/{fact_id}`
   */
  editProjectFact: { input: EditProjectFactInput; output: EditProjectFactOutput };
  /**
   * Remove a fact for good. Editors remove their own facts, owners and admins all. No conversation brings it back.
   * Scope: person. `DELETE /v1/projects/facts/{fact_id}`
   */
  removeProjectFact: { input: RemoveProjectFactInput; output: RemoveProjectFactOutput };
  /**
   * Share a fact that the user alone knows. It leaves the user's own memory and becomes the project's. Scope:
   * person. `POST /v1/projects/facts/{fact_id}/publish`
   */
  publishFact: { input: PublishFactInput; output: PublishFactOutput };
  /**
   * Take a fact back that the user alone has said. 422 E_NOT_YOURS_ALONE: others have said it as well. Scope:
   * person. `POST /v1/projects/facts/{fact_id}/hide`
   */
  hideFact: { input: HideFactInput; output: HideFactOutput };
  /**
   * Settle a dispute for a fact. Owners and admins may. The facts that it disputed go to the archive. Scope:
   * person. `POST /v1/projects/facts/{fact_id}/decide`
   */
  decideDispute: { input: DecideDisputeInput; output: DecideDisputeOutput };
  /**
   * The users that have a memory, a page at a time. Only the users that the token names. Scope: admin. `GET
   * /v1/users`
   */
  users: { input: UsersInput; output: UsersOutput };
  /**
   * Everything kept about a user. Every agent's memory with archive and ledger, todo lists and tasks. Messages,
   * refused facts and sessions only with the scope `said`. Scope: admin. `GET /v1/export`
   */
  export: { input: ExportInput; output: ExportOutput };
  /**
   * Merge an export into a user's memories. Existing facts stay; importing twice changes nothing. What an export
   * says a person wrote is believed as a person's word. Bodies of at most 8388608 bytes; `memd import` reads larger
   * files. Scope: admin. `POST /v1/import`
   */
  import: { input: ImportInput; output: ImportOutput };
  /**
   * Forget a user for good. 202: the inbox could not be reached; the documents are gone, and a worker completes the
   * rest. Scope: admin. `POST /v1/forget`
   */
  forget: { input: ForgetInput; output: ForgetOutput };
  /**
   * What should not be in a memory. A page of findings, and how many each rule has. It changes nothing. Secrets are
   * shown redacted; findings in what was said and in refused facts only with the scope `said`. Scope: admin. `GET
   * /v1/audit`
   */
  audit: { input: AuditInput; output: AuditOutput };
  /**
   * The dead letters, the newest first, a page at a time. What failed for good: code, error, whose, when; never a
   * text. Only letters of users that the token names; a raw push, whose user nobody has read, needs a token for all
   * users. Scope: admin. `GET /v1/dead`
   */
  dead: { input: DeadInput; output: DeadOutput };
  /**
   * Make dead letters pending again. Each message gets its old place. `stay`: letters whose content would be
   * refused again. Scope: admin. `POST /v1/dead/retry`
   */
  retryDead: { input: RetryDeadInput; output: RetryDeadOutput };
  /** Delete dead letters for good. This cannot be undone. Scope: admin. `POST /v1/dead/drop` */
  dropDead: { input: DropDeadInput; output: DropDeadOutput };
  /**
   * One dead letter. Its messages, or the raw push, only with the scope `said`. Scope: admin. `GET
   * /v1/dead/{letter_id}`
   */
  deadLetter: { input: DeadLetterInput; output: DeadLetterOutput };
  /**
   * The figures of the inbox. Keys by state, workers, paused endpoints, and what was counted since the inbox began.
   * No ids. Scope: status. `GET /v1/status`
   */
  status: { input: StatusInput; output: StatusOutput };
  /**
   * Tokens and money by model. Today, in total, and on each of the last `days`; `usd` is null without a price in
   * `extraction.prices`. Scope: status. `GET /v1/cost`
   */
  cost: { input: CostInput; output: CostOutput };
  /**
   * The counters of the last 48 hours. A row an hour, oldest first; the last one is the present hour. Scope:
   * status. `GET /v1/hours`
   */
  hours: { input: HoursInput; output: HoursOutput };
  /**
   * The same for Prometheus. The figures of status, and the requests of this process by route and status. Scope:
   * status. `GET /metrics`
   */
  metrics: { input: MetricsInput; output: MetricsOutput };
  /**
   * Whether this process is alive. Always 200; `inbox` says whether it reaches the inbox. Checked once a second at
   * most. `GET /health`
   */
  health: { input: HealthInput; output: HealthOutput };
  /**
   * Whether pushes are taken and the store can be written. 503 with the code of the part that is away. The check
   * writes to the store, at most once a second. `GET /ready`
   */
  ready: { input: ReadyInput; output: ReadyOutput };
  /**
   * This document. OpenAPI 3.1, with the limits in force. Made from the table that the server routes by. `GET
   * /openapi.json`
   */
  openapi: { input: OpenapiInput; output: OpenapiOutput };
  /** This document as a page. Plain HTML: no script, and nothing from elsewhere. `GET /docs` */
  docs: { input: DocsInput; output: DocsOutput };
};

/** The method and the path of every operation, and what its reply is when it is no refusal. */
export declare const operations: {
  readonly [Name in keyof Operations]: readonly [method: string, path: string, reply: "json" | "text" | "none"];
};
