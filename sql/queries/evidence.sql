-- What the steps committed: snapshots, results, findings, gate reports, certificates.

-- insert_snapshot --
-- The commit of a snapshot: from here on it exists.
insert into makewhole.snapshot (pipeline, number, revision, point, manifest)
values (%(pipeline)s, %(number)s, %(revision)s, %(point)s, %(manifest)s)
on conflict (pipeline, number, revision, point) do nothing
returning true;

-- snapshots --
-- The manifests of one revision, by point.
select point, manifest from makewhole.snapshot
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- delete_results --
-- A reconcile that is tried again replaces what its earlier attempt wrote in the same revision.
delete from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = %(stage)s;

-- insert_result --
-- Counts and digest of a hop.
insert into makewhole.hop_result (pipeline, number, revision, hop, stage, counts, digest, files)
values (%(pipeline)s, %(number)s, %(revision)s, %(hop)s, %(stage)s, %(counts)s, %(digest)s, %(files)s);

-- results --
-- The results of one revision and stage, by hop.
select hop, counts, digest, files from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = %(stage)s;

-- delete_findings --
-- See delete_results.
delete from makewhole.finding where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- insert_findings --
-- In bulk; the values list is filled in by the driver.
insert into makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence) values %s;

-- findings --
-- The findings of one revision.
select hop, key, key_hash, verdict, cause, evidence, outcome, outcome_reason
from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
order by hop, verdict, key;

-- set_outcome --
-- What became of one finding.
update makewhole.finding set outcome = %(outcome)s, outcome_reason = %(reason)s
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
  and hop = %(hop)s and key_hash = %(key_hash)s;

-- delete_handovers --
-- See delete_results.
delete from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = %(revision)s;

-- insert_handovers --
-- In bulk; the values list is filled in by the driver.
insert into makewhole.handover (pipeline, from_number, from_revision, hop, key, key_hash, evidence) values %s
on conflict do nothing;

-- handovers --
-- The keys that the newest judged revision of a window handed over: one that ended before that says nothing.
select hop, key, key_hash from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = (
    select max(revision) from makewhole.hop_result
    where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
)
order by hop, key;

-- put_key_run --
-- A sorted run of the key index.
insert into makewhole.key_run (pipeline, point, number, revision, files, keys)
values (%(pipeline)s, %(point)s, %(number)s, %(revision)s, %(files)s, %(keys)s)
on conflict (pipeline, point, number, revision) do update set files = excluded.files, keys = excluded.keys;

-- key_runs --
-- The newest run of every other window, with whether it lies before.
select distinct on (number) number, files from makewhole.key_run
where pipeline = %(pipeline)s and point = %(point)s and number <> %(number)s
order by number, revision desc;

-- put_gate_report --
-- What the gate answered at a stage; asked again, the newest answer counts.
insert into makewhole.gate_report
    (pipeline, number, revision, stage, answer, planned, evaluated, failures, document)
values
    (%(pipeline)s, %(number)s, %(revision)s, %(stage)s, %(answer)s, %(planned)s, %(evaluated)s, %(failures)s,
     %(document)s)
on conflict (pipeline, number, revision, stage) do update set
    answer = excluded.answer, planned = excluded.planned, evaluated = excluded.evaluated,
    failures = excluded.failures, document = excluded.document, committed_at = clock_timestamp();

-- gate_reports --
-- The gate's answers of one revision, by stage.
select stage, answer, planned, evaluated, failures, document from makewhole.gate_report
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- last_certificate --
-- The newest link of the chain.
select ordinal, sha256 from makewhole.certificate where pipeline = %(pipeline)s order by ordinal desc limit 1;

-- insert_certificate --
-- A new link.
insert into makewhole.certificate
    (pipeline, number, revision, ordinal, digest, body, previous, sha256, uri)
values
    (%(pipeline)s, %(number)s, %(revision)s, %(ordinal)s, %(digest)s, %(body)s, %(previous)s, %(sha256)s, %(uri)s);

-- certificate --
-- The certificate of one revision.
select ordinal, digest, body, previous, sha256, uri, issued_at from makewhole.certificate
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- certificates --
-- The whole chain, oldest first.
select ordinal, number, revision, digest, body, previous, sha256, uri, issued_at from makewhole.certificate
where pipeline = %(pipeline)s order by ordinal;

-- plans_of --
-- The plans that were made for a window, whatever the revision.
select id from makewhole.plan where pipeline = %(pipeline)s and number = %(number)s order by id;

-- frozen_at --
-- When a plan was frozen.
select frozen_at from makewhole.plan where id = %(plan)s;
