-- What a window's hops came to: counts, digests and files, after reconcile and after verify.

-- lock_results --
-- Allow one process at a time to commit the results of a revision; rows that refer to the window can be written
-- meanwhile. A client that stands still does not keep the lock.
select set_config(
    'idle_in_transaction_session_timeout',
    coalesce(nullif(current_setting('idle_in_transaction_session_timeout'), '0'), '20min'),
    true
)
from makewhole.window
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
for no key update;

-- delete_results --
-- Delete the results of an earlier attempt at the same revision and stage.
delete from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = %(stage)s;

-- insert_result --
-- Write counts and digest of a hop.
insert into makewhole.hop_result (pipeline, number, revision, hop, stage, counts, digest, files)
values (%(pipeline)s, %(number)s, %(revision)s, %(hop)s, %(stage)s, %(counts)s, %(digest)s, %(files)s);

-- results --
-- Read the results of one revision and stage, by hop.
select hop, counts, digest, files from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = %(stage)s;

-- hops_before --
-- Read the names of the hops that windows before one compared.
with recursive known (hop) as (
    (
        select hop from makewhole.hop_result
        where pipeline = %(pipeline)s and stage = 'reconciled'
        order by hop limit 1
    )
    union all
    select (
        select following.hop from makewhole.hop_result as following
        where following.pipeline = %(pipeline)s and following.stage = 'reconciled' and following.hop > known.hop
        order by following.hop limit 1
    ) from known where hop is not null
)
select hop from known
where exists (
    select from makewhole.hop_result as judged
    where judged.pipeline = %(pipeline)s and judged.hop = known.hop and judged.stage = 'reconciled'
        and judged.number < %(number)s
)
order by hop;

-- first_of_hop --
-- Read the number of the first window that compared a hop.
select min(number) from makewhole.hop_result
where pipeline = %(pipeline)s and hop = %(hop)s and stage = 'reconciled';
