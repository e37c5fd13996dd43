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

-- The findings that are accepted now: an acceptance whose time is over needs nobody to end it.
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

-- A revision can be certified again: after its certificate was revoked, or with more findings accepted.
drop index makewhole.certificate_of_revision;
create index certificate_of_revision on makewhole.certificate (pipeline, number, revision)
where kind = 'certificate';
