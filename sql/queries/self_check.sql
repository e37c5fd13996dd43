-- Rounds of self-checks: what was planted, and what became of it.

-- lock --
-- Wait until no other process plants for a pipeline; held until the transaction ends.
select pg_advisory_xact_lock(hashtext('makewhole self-check'), hashtext(%(pipeline)s));

-- journal_mark --
-- Read when the journal was made, which distinguishes it from others.
select to_char(min(applied_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') as made_at from makewhole.migration;

-- begin --
-- Write a round before anything is planted.
insert into makewhole.self_check_round (pipeline, round, run, name, records, begins, planted)
values (%(pipeline)s, %(round)s, %(run)s, %(name)s, %(records)s, %(begins)s, %(planted)s);

-- note_planted --
-- Write when all faults of a round were planted.
update makewhole.self_check_round set planted_at = %(planted_at)s
where pipeline = %(pipeline)s and round = %(round)s and planted_at is null;

-- rounds --
-- Read the newest rounds of a pipeline, the newest first. `number` is the window that covers what was planted.
select round, run, name, records, begins, planted, begun_at, planted_at, compared_at, result,
    (
        select min(number) from makewhole.window
        where pipeline = self_check_round.pipeline and end_time >= self_check_round.planted_at
    ) as number
from makewhole.self_check_round
where pipeline = %(pipeline)s
order by round desc
limit %(most)s;

-- put_result --
-- Write what became of a round.
update makewhole.self_check_round set result = %(result)s, compared_at = clock_timestamp()
where pipeline = %(pipeline)s and round = %(round)s and compared_at is null;

-- first_judged --
-- Read the first revision of a window that was compared.
select min(revision) as revision from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s;

-- newest_results --
-- Read the newest compared round of each pipeline.
select distinct on (pipeline) pipeline, round, compared_at, result
from makewhole.self_check_round where compared_at is not null
order by pipeline, round desc;
