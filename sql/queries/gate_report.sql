-- What the gate answered.

-- put_gate_report --
-- Write the gate's report on a stage; the newest one counts.
insert into makewhole.gate_report
    (pipeline, number, revision, stage, answer, planned, evaluated, failures, document)
values
    (%(pipeline)s, %(number)s, %(revision)s, %(stage)s, %(answer)s, %(planned)s, %(evaluated)s, %(failures)s,
     %(document)s)
on conflict (pipeline, number, revision, stage) do update set
    answer = excluded.answer, planned = excluded.planned, evaluated = excluded.evaluated,
    failures = excluded.failures, document = excluded.document, committed_at = clock_timestamp();

-- gate_reports --
-- Read the gate's reports of one revision, by stage.
select stage, answer, planned, evaluated, failures, document from makewhole.gate_report
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;
