-- The journal: makewhole's memory. One schema, so that it can share a database with something else.
create schema if not exists makewhole;

create table makewhole.migration (
    version integer primary key,
    name text not null,
    sha256 text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- One row per revision of a window. Bounds are the same in every revision of a number.
create table makewhole.window (
    pipeline text not null,
    number integer not null check (number > 0),
    revision integer not null check (revision > 0),
    start_time timestamptz,
    end_time timestamptz not null,
    opened_at timestamptz not null default clock_timestamp(),
    state text not null default 'open' check (state in ('open', 'certified', 'gaps', 'not_known', 'error')),
    reason text,
    request text not null,
    plan_only boolean not null default false,
    configuration jsonb not null,
    closed_at timestamptz,
    primary key (pipeline, number, revision),
    unique (pipeline, request),
    check (start_time < end_time)
);

-- A lane is one partition of one incarnation of a topic, as one pipeline sees it. It exists so that the overlap of
-- ranges can be refused by GiST alone, without an extension for equality on text.
create table makewhole.lane (
    id bigint generated always as identity primary key,
    pipeline text not null,
    point text not null,
    topic text not null,
    topic_id text not null,
    partition integer not null check (partition >= 0),
    unique (pipeline, point, topic_id, partition)
);

create table makewhole.window_range (
    pipeline text not null,
    number integer not null,
    lane bigint not null references makewhole.lane (id),
    offsets int8range not null check (not lower_inf(offsets) and not upper_inf(offsets)),
    lo bigint not null,
    hi bigint not null check (lo >= 0 and hi >= lo),
    primary key (pipeline, number, lane),
    check (isempty(offsets) and lo = hi or lower(offsets) = lo and upper(offsets) = hi),
    constraint windows_do_not_overlap exclude using gist (int8range(lane, lane, '[]') with &&, offsets with &&)
);

-- What was known to exist at a moment: topic offsets below the stable offset, rows visible to a ledger's snapshot.
-- The settle time counts from here, never from a timestamp that a producer wrote.
create table makewhole.observation (
    pipeline text not null,
    point text not null,
    observed_at timestamptz not null,
    topic_id text,
    stable_offsets jsonb,
    pg_snapshot text,
    primary key (pipeline, point, observed_at)
);

-- A snapshot exists when its manifest is here: files of killed attempts are never named.
create table makewhole.snapshot (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    point text not null,
    manifest jsonb not null,
    committed_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision, point),
    foreign key (pipeline, number, revision) references makewhole.window
);

-- What reconcile (and later verify) counted on a hop. `digest` is order-free over (key, verdict, row hash).
create table makewhole.hop_result (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    hop text not null,
    stage text not null check (stage in ('reconciled', 'verified')),
    counts jsonb not null,
    digest text not null,
    files jsonb not null default '{}',
    committed_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision, hop, stage),
    foreign key (pipeline, number, revision) references makewhole.window
);

-- The index of every key ever seen on a topic, as sorted runs: one per window, later merged.
create table makewhole.key_run (
    pipeline text not null,
    point text not null,
    number integer not null,
    revision integer not null,
    files jsonb not null,
    keys bigint not null,
    primary key (pipeline, point, number, revision)
);

create table makewhole.finding (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    hop text not null,
    key text not null,
    key_hash text not null,
    verdict text not null,
    cause text not null,
    evidence jsonb not null,
    outcome text not null default 'open'
        check (outcome in ('open', 'repaired', 'contained', 'handed_over', 'refused')),
    outcome_reason text,
    primary key (pipeline, number, revision, hop, key_hash),
    foreign key (pipeline, number, revision) references makewhole.window
);

-- What disputes a value of a key: a repair in another window does not carry it on. And what a window said of a key, for one
-- that looks at its rows again.
create index open_dispute on makewhole.finding (pipeline, key_hash)
where outcome in ('open', 'refused', 'contained', 'reversed')
    and verdict in ('mismatched', 'unexpected', 'undecidable', 'conflict', 'duplicate');

-- Keys in flight at a cut, judged in the next window by name.
create table makewhole.handover (
    pipeline text not null,
    from_number integer not null,
    from_revision integer not null,
    hop text not null,
    key text not null,
    key_hash text not null,
    evidence jsonb not null default '{}',
    primary key (pipeline, from_number, from_revision, hop, key_hash)
);

create table makewhole.gate_report (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    stage text not null check (stage in ('reconciled', 'verified')),
    answer text not null check (answer in ('PASS', 'FAIL', 'ERROR')),
    planned integer not null,
    evaluated integer not null,
    failures jsonb not null,
    document jsonb not null,
    committed_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision, stage),
    foreign key (pipeline, number, revision) references makewhole.window
);

create table makewhole.plan (
    id text primary key,
    pipeline text not null,
    number integer not null,
    revision integer not null,
    sha256 text not null,
    payload_uri text,
    payload_sha256 text,
    counts jsonb not null,
    state text not null
        check (state in ('frozen', 'refused', 'awaiting_approval', 'approved', 'rejected', 'running', 'done')),
    reason text,
    frozen_at timestamptz not null default clock_timestamp(),
    unique (pipeline, number, revision),
    foreign key (pipeline, number, revision) references makewhole.window
);

create table makewhole.action (
    plan text not null references makewhole.plan (id),
    seq integer not null,
    remedy text not null,
    hop text not null,
    target text not null,
    key text not null,
    key_hash text not null,
    payload_sha256 text,
    before jsonb not null default '{}',
    outcome text,
    outcome_reason text,
    primary key (plan, seq)
);
create index action_by_key on makewhole.action (key_hash, target);

-- One answer per plan, bound to its hash, copied from where the person gave it.
create table makewhole.approval (
    plan text primary key references makewhole.plan (id),
    sha256 text not null,
    decision text not null check (decision in ('approved', 'rejected', 'timed_out', 'not_needed')),
    by text,
    at timestamptz not null,
    expires_at timestamptz,
    seen jsonb not null default '{}'
);

-- The chunks of a plan per target, copied from the receipts at the target: the journal follows, it never leads.
create table makewhole.chunk (
    plan text not null references makewhole.plan (id),
    target text not null,
    chunk integer not null,
    actions integer not null,
    place text not null,
    observed_at timestamptz not null default clock_timestamp(),
    primary key (plan, target, chunk)
);

-- The epoch grows with every take-over: a runner with an older one is fenced.
create table makewhole.lease (
    resource text primary key,
    holder text not null,
    epoch bigint not null,
    expires_at timestamptz not null
);

create table makewhole.certificate (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    ordinal integer not null,
    digest text not null,
    body jsonb not null,
    previous text,
    sha256 text not null,
    uri text not null,
    issued_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision),
    unique (pipeline, ordinal),
    unique (pipeline, sha256),
    foreign key (pipeline, number, revision) references makewhole.window
);
