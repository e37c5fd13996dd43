-- Why steps did not end well.

-- put --
-- Write why a step did not end well; what was written of it before is replaced, and of a request what was of another. What
-- is final stays so while the step is tried again: it waits until it has ended well.
insert into makewhole.step_failure as known
    (pipeline, number, revision, step, is_request, dag, run, is_permanent, is_final, reason)
values (
    %(pipeline)s, %(number)s, %(revision)s, %(step)s, %(is_request)s, %(dag)s, %(run)s, %(is_permanent)s,
    %(is_permanent)s, %(reason)s
)
on conflict (pipeline, number, revision, step, is_request) do update
set dag = excluded.dag, run = excluded.run, is_permanent = excluded.is_permanent, reason = excluded.reason,
    is_final = known.is_final or excluded.is_final, failed_at = clock_timestamp();

-- end_tries --
-- Write that a step is not tried again in its run. The run is of one pipeline: which one, a callback of Airflow's does not
-- know in a DAG of people's own.
update makewhole.step_failure set is_final = true
where number = %(number)s and revision = %(revision)s and step = %(step)s and dag = %(dag)s and run = %(run)s;

-- forget --
-- Remove what was written of a step: it has ended well.
delete from makewhole.step_failure
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and step = %(step)s;

-- of_revision --
-- Read the failures of a revision, the newest first.
select step, dag, run, is_permanent, reason, failed_at from makewhole.step_failure
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
order by failed_at desc, step;
