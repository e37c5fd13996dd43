-- The journal of the first release. One schema, so that it can share a database with something else.
create schema if not exists makewhole;

create table makewhole.migration (
    version integer primary key,
    name text not null,
    sha256 text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- One row per revision of a window. Bounds are the same in every revision of a number. `is_newest`: no later one exists.
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
    read_again boolean not null default false,
    configuration jsonb not null,
    closed_at timestamptz,
    is_newest boolean not null default true,
    primary key (pipeline, number, revision),
    unique (pipeline, request),
    check (start_time < end_time)
);
create index open_window on makewhole.window (pipeline, number) where is_newest and state <> 'certified';
create index window_by_end on makewhole.window (pipeline, end_time);
create index unfinished_window on makewhole.window (pipeline, number) where is_newest and state in ('open', 'error');
create index window_with_gaps on makewhole.window (pipeline, opened_at)
where is_newest and state = 'gaps' and not plan_only;
create index compared_by on makewhole.window (
    pipeline, md5((configuration ->> 'compare') || coalesce(configuration ->> 'compare_of_hops', '')), number
);

-- The deployment of Airflow that judges a pipeline: no other one opens its windows, takes its plans back or keeps its
-- house, until a person releases it. `deployment`: the name in its configuration, or the one that it keeps in a variable.
-- `address`: where people open it.
create table makewhole.pipeline_owner (
    pipeline text primary key,
    deployment text not null,
    address text not null,
    claimed_at timestamptz not null default clock_timestamp(),
    released_at timestamptz,
    released_by text,
    check ((released_at is null) = (released_by is null))
);

-- A lane is one partition of one incarnation of a topic, as one pipeline sees it. It exists so that the overlap of
-- ranges can be refused by GiST alone, without an extension for equality on text. A truncated partition goes on as
-- another lineage: offsets from the point of truncation on mean other records.
create table makewhole.lane (
    id bigint generated always as identity primary key,
    pipeline text not null,
    point text not null,
    topic text not null,
    topic_id text not null,
    partition integer not null check (partition >= 0),
    lineage integer not null default 0 check (lineage >= 0),
    unique (pipeline, point, topic_id, partition, lineage)
);

-- `leader_epochs`: what the offsets of a range had when they were frozen: [[epoch, end offset], …], ascending.
-- `log_epochs`: those of the partition's log up to the end of the range, as all ranges so far say it.
create table makewhole.window_range (
    pipeline text not null,
    number integer not null,
    lane bigint not null references makewhole.lane (id),
    offsets int8range not null check (not lower_inf(offsets) and not upper_inf(offsets)),
    lo bigint not null,
    hi bigint not null check (lo >= 0 and hi >= lo),
    leader_epochs jsonb not null default '[]',
    log_epochs jsonb not null default '[]',
    primary key (pipeline, number, lane),
    check (isempty(offsets) and lo = hi or lower(offsets) = lo and upper(offsets) = hi),
    constraint windows_do_not_overlap exclude using gist (int8range(lane, lane, '[]') with &&, offsets with &&)
);
create index range_of_lane on makewhole.window_range (lane, number);

-- The leader epochs of a partition's log up to the end of a range: those `before` it, cut where the range begins (`lo`),
-- and its `own`. Each is [epoch, end offset], ascending.
create function makewhole.epochs_with(before jsonb, lo bigint, own jsonb) returns jsonb
language sql immutable as $$
    select case
        when own = '[]' then before
        else coalesce(
            (
                select jsonb_agg(jsonb_build_array(entry -> 0, least((entry ->> 1)::bigint, lo)) order by place)
                from jsonb_array_elements(before) with ordinality as known (entry, place)
                where (entry ->> 0)::bigint < (own #>> '{0,0}')::bigint
            ),
            '[]'
        ) || own
    end
$$;

-- What was known to exist at a moment: topic offsets below the stable offset, rows visible to a ledger's snapshot.
-- The settle time counts from here, never from a timestamp that a producer wrote.
create table makewhole.observation (
    pipeline text not null,
    point text not null,
    observed_at timestamptz not null,
    topic_id text,
    stable_offsets jsonb,
    leader_epochs jsonb, -- partition → [epoch, end offset] of the last records before its stable offset, ascending
    pg_snapshot text,
    place text, -- where the table stood: the snapshot means nothing elsewhere
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
create index snapshot_of_point on makewhole.snapshot (pipeline, point, number);

-- What happened to a topic's log itself, or to the group that reads it, as far as it bears on a window: offsets [lo, hi)
-- of a partition. Groups of several hops can stand at one place.
create table makewhole.incident (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    kind text not null,
    point text not null,
    topic text not null,
    topic_id text not null,
    partition integer,
    lo bigint,
    hi bigint,
    detail jsonb not null default '{}',
    found_at timestamptz not null default clock_timestamp(),
    foreign key (pipeline, number, revision) references makewhole.window,
    check (lo <= hi)
);
create unique index incident_once on makewhole.incident
    (pipeline, number, revision, kind, point, topic_id, coalesce(partition, -1), coalesce(lo, -1),
     coalesce(detail ->> 'group', ''));
create index incident_of_log on makewhole.incident (pipeline, number)
where kind in ('truncated', 'expired', 'beginning_gone') or detail ->> 'before_it_was_read' = 'true';

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
create index met_unmatched on makewhole.hop_result (pipeline, hop, number)
where stage = 'reconciled' and (
    (files #>> '{summary,counts,unexpected}')::bigint > 0
    or (files #>> '{summary,undecidable_without_source}')::bigint > 0
    or (files #>> '{summary,before_baseline_without_source}')::bigint > 0
    or (files ->> 'met_far_ahead')::bigint > 0
);
create index judged_hop on makewhole.hop_result (pipeline, hop, number) where stage = 'reconciled';

-- The index of every key ever seen on a topic, as sorted runs: one per window, later merged. Windows up to the last one
-- that was dropped are older than the index reaches. A run is partial that may lack keys of a ledger which earlier
-- revisions of its window read.
create table makewhole.key_run (
    pipeline text not null,
    point text not null,
    number integer not null,
    revision integer not null,
    files jsonb not null,
    keys bigint not null,
    is_partial boolean not null default false,
    retired_at timestamptz,
    is_dropped boolean not null default false,
    primary key (pipeline, point, number, revision)
);
create index standing_run on makewhole.key_run (pipeline, point, number) where retired_at is null;
create index run_with_files on makewhole.key_run (pipeline, point, retired_at)
where retired_at is not null and files <> '{}';
create index rerun on makewhole.key_run (pipeline, point, number) where revision > 1;
create index dropped_run on makewhole.key_run (pipeline, point, number) where is_dropped;

-- A merged run: `windows` are the windows in it with their revisions, `files` one file for each bucket, in a folder that is
-- named after the `attempt`. It is retired from the attempt's beginning, and stands once that has succeeded.
create table makewhole.key_merge (
    id bigint generated always as identity primary key,
    pipeline text not null,
    point text not null,
    attempt text not null unique,
    windows jsonb not null,
    files jsonb not null,
    rows bigint not null check (rows >= 0),
    merged_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz
);

create index standing_merge on makewhole.key_merge (pipeline, point) where retired_at is null;

-- The number of rows of a table in the time slice of window `slice`, counted by the snapshot of a revision of a window:
-- what its view had seen, and where the table stood, is in that snapshot's manifest. `source` is what was counted:
-- connection, table and time column; counts of another one say nothing.
create table makewhole.slice_count (
    pipeline text not null,
    point text not null,
    slice integer not null,
    number integer not null,
    revision integer not null,
    source text not null,
    rows bigint not null check (rows >= 0),
    counted_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, point, slice, number, revision),
    foreign key (pipeline, number, revision, point) references makewhole.snapshot
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
        check (outcome in ('open', 'repaired', 'contained', 'reversed', 'erased', 'handed_over', 'refused')),
    outcome_reason text,
    primary key (pipeline, number, revision, hop, key_hash),
    foreign key (pipeline, number, revision) references makewhole.window
);

-- What disputes a value of a key: a repair in another window does not carry it on. And what a window said of a key, for one
-- that looks at its rows again.
create index open_dispute on makewhole.finding (pipeline, key_hash)
where outcome in ('open', 'refused', 'contained', 'reversed')
    and verdict in ('mismatched', 'unexpected', 'undecidable', 'conflict', 'duplicate');

-- Keys in flight at a cut, judged in the next window by name. `since`: the S1 of the window in which the key was first
-- judged pending.
create table makewhole.handover (
    pipeline text not null,
    from_number integer not null,
    from_revision integer not null,
    hop text not null,
    key text not null,
    key_hash text not null,
    evidence jsonb not null default '{}',
    since timestamptz not null,
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

-- One plan per window revision, and what it came to. A plan that `undoes` another puts back what that one wrote, at most
-- one at a time. `control` and `records_per_second` (null: the pipeline's) steer a running plan between chunks;
-- `log_ends` is where the logs of its targets ended when it was begun: target → partition → stable offset.
-- `settled_at` is when another plan took its place: its runners are fenced since, and its receipts are all here, unless
-- it `is_unknown`: then it may have written any of its keys. `superseded_by` is the revision of the window that ended it.
-- `asked_until` is when a question that waits for a person ends.
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
    undoes text references makewhole.plan (id),
    control text not null default 'run' check (control in ('run', 'pause')),
    records_per_second integer check (records_per_second > 0),
    began_at timestamptz,
    ended_at timestamptz,
    log_ends jsonb,
    settled_at timestamptz,
    is_unknown boolean not null default false,
    superseded_by integer check (superseded_by > revision),
    asked_until timestamptz,
    foreign key (pipeline, number, revision) references makewhole.window
);
create index waiting_plan on makewhole.plan (pipeline) where state in ('awaiting_approval', 'approved', 'running');
create unique index plan_of_window on makewhole.plan (pipeline, number, revision) where undoes is null;
create unique index undo_of_plan on makewhole.plan (undoes) where state not in ('refused', 'rejected');

-- What a plan will do, frozen: the plan's hash is over these rows as COPY writes them. `before` is canonical JSON.
-- `refusal` is the only thing that is ever added: why the action is not done.
create table makewhole.planned_action (
    plan text not null references makewhole.plan (id),
    seq integer not null,
    chunk integer not null check (chunk >= 0),
    remedy text not null,
    hop text not null,
    target text not null,
    key text not null,
    key_hash text not null,
    before text not null,
    refusal text,
    primary key (plan, seq)
);
create index action_by_key on makewhole.planned_action (key_hash, target);
create index refused_action on makewhole.planned_action (plan, target, chunk) where refusal is not null;

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
create index chunk_observed_at on makewhole.chunk (observed_at);

-- Where the records of a Kafka chunk were written: noted before the transaction is committed, so that no record of ours
-- is ever committed at a position that the journal does not know. What an attempt noted and did not commit is replaced
-- by the next one; the offsets of an aborted record never hold a committed one. Offsets ascend, each with its action.
create table makewhole.replayed_position (
    plan text not null references makewhole.plan (id),
    target text not null,
    chunk integer not null check (chunk >= 0),
    topic_id text not null,
    partition integer not null check (partition >= 0),
    first_offset bigint not null,
    last_offset bigint not null,
    seqs integer[] not null,
    offsets bigint[] not null check (cardinality(offsets) = cardinality(seqs)),
    primary key (plan, target, chunk, partition)
);
create index replayed_position_by_offset on makewhole.replayed_position (topic_id, partition, last_offset);

-- The actions with what became of them: done when their chunk has its receipt and they were not refused.
create view makewhole.action as
select plan, seq, chunk, remedy, hop, target, key, key_hash, before,
       case when refusal is not null then 'refused'
            when exists (select from makewhole.chunk as receipt
                         where receipt.plan = planned.plan and receipt.target = planned.target
                         and receipt.chunk = planned.chunk) then 'done'
       end as outcome,
       refusal as outcome_reason
from makewhole.planned_action as planned;

-- The epoch grows with every take-over: a runner with an older one is fenced.
create table makewhole.lease (
    resource text primary key,
    holder text not null,
    epoch bigint not null,
    expires_at timestamptz not null
);

-- The chain of each pipeline: certificates, and the revocations of those that no longer hold.
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
    kind text not null default 'certificate' check (kind in ('certificate', 'revocation')),
    revokes integer,
    signed_by text,
    signature text,
    primary key (pipeline, ordinal),
    unique (pipeline, sha256),
    unique (pipeline, revokes),
    foreign key (pipeline, number, revision) references makewhole.window,
    foreign key (pipeline, revokes) references makewhole.certificate (pipeline, ordinal),
    check ((kind = 'revocation') = (revokes is not null)),
    check (revokes < ordinal),
    check ((signed_by is null) = (signature is null))
);

create index certificate_of_revision on makewhole.certificate (pipeline, number, revision)
where kind = 'certificate';
create index revocation_by_ordinal on makewhole.certificate (pipeline, ordinal) where kind = 'revocation';

-- A window that was left unfinished (in error, or by a run that ended in the middle of it) and was gone on with by `run`.
-- `asked_by` is the run that found it before its own window.
create table makewhole.continuation (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    attempt integer not null check (attempt > 0),
    run text not null,
    asked_by text not null,
    began_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision, attempt),
    foreign key (pipeline, number, revision) references makewhole.window
);

-- Why a step did not end well when it was last tried; the row goes when the step ends well. `number` and `revision` are 0
-- of a run that opened no window; `is_request` where that was for what its form asked, and not for the pipeline.
-- `is_final`: a person has to act, since it is permanent or its task had no try left.
create table makewhole.step_failure (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    step text not null,
    is_request boolean not null,
    dag text not null,
    run text not null,
    is_permanent boolean not null,
    is_final boolean not null,
    reason text not null,
    failed_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision, step, is_request)
);

-- How far a step is that runs now, in so many parts, for those who wait for it. The row goes when the step ends; that of
-- a step that was killed is replaced by its next try, and says nothing once it is old.
create table makewhole.step_progress (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    step text not null,
    dag text not null,
    run text not null,
    done integer not null check (done >= 0),
    total integer not null check (total >= done),
    began_at timestamptz not null default clock_timestamp(),
    noted_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision, step)
);

-- A round of a self-check: written before its faults are planted, completed when they are, and when a window's findings
-- were compared with them. `name` begins the keys, `begins` are the offsets from which on the records of the round lie;
-- `planted` are hop, verdict and key of each fault.
create table makewhole.self_check_round (
    pipeline text not null,
    round integer not null check (round > 0),
    run text not null,
    name text not null,
    records integer not null,
    begins jsonb not null,
    planted jsonb not null,
    begun_at timestamptz not null default clock_timestamp(),
    planted_at timestamptz,
    compared_at timestamptz check (compared_at is null or planted_at is not null),
    result jsonb check ((result is null) = (compared_at is null)),
    primary key (pipeline, round)
);

-- Findings that a person accepts, for good or until a moment: what was asked, by whom, and who said yes.
-- `sha256` is over all that was asked, `findings` included; `expires_at` is when the question does.
create table makewhole.acceptance (
    id text primary key,
    pipeline text not null,
    number integer not null,
    revision integer not null,
    request text not null,
    sha256 text not null,
    reason text not null check (reason <> ''),
    until timestamptz,
    findings integer not null check (findings > 0),
    asked_by text not null,
    asked_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    state text not null check (state in ('awaiting_approval', 'standing', 'rejected', 'revoked')),
    decided_by text,
    decided_at timestamptz,
    seen jsonb not null default '{}',
    revoked_by text,
    revoked_at timestamptz,
    revoked_because text,
    unique (pipeline, request),
    foreign key (pipeline, number, revision) references makewhole.window
);
create index acceptance_of_window on makewhole.acceptance (pipeline, number);

-- The findings of an acceptance, by the revision of the window that has them. `fingerprint` is over what was judged of the
-- key, `held` over the rows of it that the tables had when it was accepted. One that does not `stand` is open again, with
-- the reason; `is_answered`: its window was judged again since.
create table makewhole.accepted_finding (
    acceptance text not null references makewhole.acceptance (id),
    pipeline text not null,
    number integer not null,
    revision integer not null,
    hop text not null,
    key text not null,
    key_hash text not null,
    verdict text not null,
    cause text not null,
    fingerprint text not null,
    held text not null,
    stands boolean not null default false,
    ended_at timestamptz,
    ended_because text,
    is_answered boolean not null default true,
    primary key (acceptance, revision, hop, key_hash)
);
create unique index accepted_once on makewhole.accepted_finding (pipeline, number, revision, hop, key_hash) where stands;
create index accepted_key on makewhole.accepted_finding (pipeline, key_hash);
create index unanswered_acceptance on makewhole.accepted_finding (pipeline) where not is_answered;

-- The findings that are accepted now: an acceptance whose time is over has ended by itself.
create view makewhole.accepted_now as
select found.pipeline, found.number, found.revision, found.hop, found.key_hash, word.id as acceptance,
       word.decided_by, word.reason, word.until
from makewhole.accepted_finding as found
join makewhole.acceptance as word on word.id = found.acceptance
where found.stands and word.state = 'standing' and (word.until is null or word.until > now());

-- The findings with their outcomes of now: what is open, and was accepted, is `accepted`.
create view makewhole.finding_now as
select finding.pipeline, finding.number, finding.revision, finding.hop, finding.key, finding.key_hash, finding.verdict,
       finding.cause, finding.evidence,
       case when word.acceptance is null then finding.outcome else 'accepted' end as outcome,
       case when word.acceptance is null then finding.outcome_reason
            else 'by ' || word.decided_by
                 || coalesce(' until ' || to_char(word.until at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'), '')
                 || ': ' || word.reason
       end as outcome_reason,
       word.acceptance
from makewhole.finding
left join makewhole.accepted_now as word
    on (word.pipeline, word.number, word.revision, word.hop, word.key_hash)
     = (finding.pipeline, finding.number, finding.revision, finding.hop, finding.key_hash)
    and finding.outcome in ('open', 'refused');

-- What is published once for everyone: the records of a topic point, in the folder `root` of a storage, and from there in
-- `topic` (its place; empty: none). `topic_id` and `partitions` are those of the topic when records were first to be sent.
-- `sent_chunks` follows the receipts in Kafka; `sent_ends`: partition → offset behind the last record sent.
create table makewhole.publication (
    id text primary key,
    pipeline text not null,
    point text not null,
    root text not null unique,
    topic text not null default '',
    first_window integer not null check (first_window > 0),
    topic_id text,
    partitions integer check (partitions > 0),
    sent_chunks bigint not null default 0 check (sent_chunks >= 0),
    sent_ends jsonb not null default '{}',
    began_at timestamptz not null default clock_timestamp()
);
create index publication_of_point on makewhole.publication (pipeline, point);
create unique index publication_into_topic on makewhole.publication (topic) where topic <> '';

-- What was published of a revision of a window: decided once, by its row here, and visible once its `manifest`, with the
-- `files` in it, stands beside them. `ordinal` is the order in which it is sent, in `chunks` from `first_chunk` on.
-- `reported_by`: the run whose event of the asset has it; null: no event has.
create table makewhole.published_window (
    publication text not null references makewhole.publication (id),
    pipeline text not null,
    number integer not null,
    revision integer not null,
    ordinal integer not null check (ordinal > 0),
    manifest jsonb not null,
    files jsonb not null, -- apart: they are many, and asked for of few windows
    first_chunk bigint not null check (first_chunk >= 0),
    chunks bigint not null check (chunks >= 0),
    decided_at timestamptz not null default clock_timestamp(),
    visible_at timestamptz,
    reported_by text,
    primary key (publication, number, revision),
    unique (publication, ordinal),
    foreign key (pipeline, number, revision) references makewhole.window
);

-- A way to people of a pipeline. Who sends locks its row. `failed_at`, `reason`: why nothing could be sent since.
create table makewhole.notice_channel (
    pipeline text not null,
    channel text not null,
    failed_at timestamptz,
    reason text,
    primary key (pipeline, channel)
);

-- What was sent through a channel, until all of it is over. `fingerprint` is over what was said of the subject, `said` its
-- first line.
create table makewhole.notice (
    pipeline text not null,
    channel text not null,
    subject text not null,
    fingerprint text not null,
    said text not null,
    first_said_at timestamptz not null,
    said_at timestamptz not null,
    primary key (pipeline, channel, subject),
    foreign key (pipeline, channel) references makewhole.notice_channel
);

-- What was removed because it was kept as long as the pipeline's file says (`kept`): of the revisions of a window up to one,
-- or of a plan. Decided before the first file goes; `removed_at`: all of it is gone, `removed` says how much it was.
create table makewhole.removal (
    id bigint generated always as identity primary key,
    pipeline text not null,
    kind text not null check (kind in ('archives', 'attempts', 'findings', 'quarantine', 'effects')),
    number integer not null,
    revision integer not null,
    plan text references makewhole.plan (id),
    kept text not null,
    decided_at timestamptz not null default clock_timestamp(),
    removed_at timestamptz,
    removed jsonb not null default '{}'
);
create unique index removal_of_window on makewhole.removal (pipeline, kind, number, revision) where plan is null;
create unique index removal_of_plan on makewhole.removal (kind, plan) where plan is not null;

-- A key that was erased on request, everywhere makewhole wrote it. `key_mac`: the HMAC-SHA256 of the key's hash with the
-- `secret`, which is of this erasure alone; `prefix`: the sixteen bits of that hash that say its bucket, which many keys
-- share: few have to be tried. `spares`: points of other chains, where the same text is the key of another thing.
-- `erased_at`: all of it is gone; windows that were opened before `searched_to` have not read it since. `body` is what was
-- done, signed as certificates are.
create table makewhole.erasure (
    id bigint generated always as identity primary key,
    pipeline text not null,
    secret text not null,
    key_mac text not null,
    prefix integer not null check (prefix between 0 and 65535),
    spares text[] not null default '{}',
    reason text not null check (reason <> ''),
    asked_by text not null check (asked_by <> ''),
    asked_at timestamptz not null default clock_timestamp(),
    erased_at timestamptz,
    searched_to timestamptz,
    body jsonb,
    signed_by text,
    signature text,
    check ((erased_at is null) = (body is null)),
    check ((signed_by is null) = (signature is null))
);
create index erasure_of_pipeline on makewhole.erasure (pipeline, id);

-- A file that an erasure wrote again without the key: its SHA-256 before, and what it became (null: it was removed). Noted
-- before the file changes.
create table makewhole.erased_file (
    erasure bigint not null references makewhole.erasure (id),
    path text not null,
    sha256 text not null,
    became text,
    primary key (erasure, path)
);

-- A plan of which an erasure took actions out: the hash that it was frozen with, and the one of what is left.
create table makewhole.erased_plan (
    erasure bigint not null references makewhole.erasure (id),
    plan text not null references makewhole.plan (id),
    sha256 text not null,
    became text not null,
    primary key (erasure, plan)
);
create index erasure_of_plan on makewhole.erased_plan (plan);
