-- How far steps are that are running now.

-- put_progress --
-- Write how far a step is; what was written of it before is replaced.
insert into makewhole.step_progress (pipeline, number, revision, step, dag, run, done, total)
values (%(pipeline)s, %(number)s, %(revision)s, %(step)s, %(dag)s, %(run)s, %(done)s, %(total)s)
on conflict (pipeline, number, revision, step) do update
set dag = excluded.dag, run = excluded.run, done = excluded.done, total = excluded.total,
    began_at = case when excluded.total = step_progress.total and excluded.done >= step_progress.done
        then step_progress.began_at else clock_timestamp() end,
    noted_at = clock_timestamp();

-- forget_progress --
-- Remove what was written of a step: it does not run any more.
delete from makewhole.step_progress
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and step = %(step)s;

-- progress_of_run --
-- Read how far the step is that a run is at; nothing where that was not written lately.
select step, done, total, extract(epoch from noted_at - began_at)::float8 as seconds from makewhole.step_progress
where dag = %(dag)s and run = %(run)s and noted_at > clock_timestamp() - interval '1 minute'
order by noted_at desc
limit 1;
