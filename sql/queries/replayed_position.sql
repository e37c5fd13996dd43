-- Where the records of plans were written.

-- forget_positions --
-- Delete what an earlier attempt noted for a chunk that it did not commit.
delete from makewhole.replayed_position where plan = %(plan)s and target = %(target)s and chunk = %(chunk)s

-- put_positions --
-- Write where the records of a chunk stand, a row for each partition.
insert into makewhole.replayed_position
    (plan, target, chunk, topic_id, partition, first_offset, last_offset, seqs, offsets)
select %(plan)s, %(target)s, %(chunk)s, %(topic_id)s, written.partition, min(written.at), max(written.at),
       array_agg(written.seq order by written.at), array_agg(written.at order by written.at)
from unnest(%(seqs)s::integer[], %(partitions)s::integer[], %(offsets)s::bigint[]) as written (seq, partition, at)
group by written.partition

-- positions_of_chunk --
-- Read where the records of a chunk were written in a topic incarnation: (partition, action numbers, offsets).
select partition, seqs, offsets from makewhole.replayed_position
where plan = %(plan)s and target = %(target)s and chunk = %(chunk)s and topic_id = %(topic_id)s
order by partition

-- positions_of_plan --
-- Read where a plan wrote to a topic incarnation: (partition, action numbers, offsets).
select partition, seqs, offsets from makewhole.replayed_position
where plan = %(plan)s and target = %(target)s and topic_id = %(topic_id)s
order by partition, first_offset

-- positions_between --
-- Read where plans wrote within some ranges of partitions and offsets, whichever pipeline is theirs: the plan, the
-- position, the key that the record has there, and whether it was produced (it repeats no record of the topic).
select position.plan, position.partition, written.at as offset,
       case when action.remedy = 'reverse' then action.before::jsonb ->> 'reversal_key_hash' else action.key_hash end
           as key_hash, action.remedy = 'produce' as is_produced
from unnest(%(topic_ids)s::text[], %(firsts)s::integer[], %(lasts)s::integer[], %(los)s::bigint[], %(his)s::bigint[])
    as wanted (topic_id, first, last, lo, hi)
join makewhole.replayed_position as position
    on position.topic_id = wanted.topic_id
    and position.partition >= wanted.first and (wanted.last is null or position.partition <= wanted.last)
    and position.last_offset >= wanted.lo and (wanted.hi is null or position.first_offset < wanted.hi)
cross join lateral unnest(position.seqs, position.offsets) as written (seq, at)
join makewhole.planned_action as action on action.plan = position.plan and action.seq = written.seq
where written.at >= wanted.lo and (wanted.hi is null or written.at < wanted.hi)
order by position.plan, position.partition, written.at

-- keys_written --
-- Read the hashes of the keys that plans wrote to a topic: those that the records have there.
select distinct case when action.remedy = 'reverse' then action.before::jsonb ->> 'reversal_key_hash'
                     else action.key_hash end as key_hash
from makewhole.replayed_position as position
cross join lateral unnest(position.seqs) as written (seq)
join makewhole.planned_action as action on action.plan = position.plan and action.seq = written.seq
where position.plan = any(%(plans)s) and position.topic_id = any(%(topic_ids)s)
order by key_hash

-- sent_of_keys --
-- Read where plans sent records of some keys, whichever pipeline is theirs: those of chunks that have a receipt, and of
-- chunks of which it is not known whether they happened.
with sent as materialized (
    select plan, target, chunk, seq, key_hash from makewhole.planned_action
    where key_hash = any(%(hashes)s::text[]) and plan <> %(but)s
    and remedy in ('redeliver', 'produce') and refusal is null
)
select sent.key_hash, position.topic_id, position.partition, written.at as offset,
       clock_timestamp() - coalesce(receipt.observed_at, plan.settled_at, plan.began_at, plan.frozen_at) as age
from (select distinct plan, target, chunk from sent) as wanted
join makewhole.plan on plan.id = wanted.plan
join makewhole.replayed_position as position
    on (position.plan, position.target, position.chunk) = (wanted.plan, wanted.target, wanted.chunk)
cross join lateral unnest(position.seqs, position.offsets) as written (seq, at)
join sent on sent.plan = wanted.plan and sent.seq = written.seq
left join makewhole.chunk as receipt
    on (receipt.plan, receipt.target, receipt.chunk) = (wanted.plan, wanted.target, wanted.chunk)
where receipt.observed_at is not null or plan.is_unknown or plan.settled_at is null
order by sent.key_hash, position.topic_id, position.partition, written.at

-- last_seen --
-- Read what was last observed of a topic by the moment at which a window revision was opened.
select observation.topic_id, observation.stable_offsets, observation.leader_epochs
from makewhole.observation
join makewhole.window as judged
    on judged.pipeline = %(pipeline)s and judged.number = %(number)s and judged.revision = %(revision)s
where observation.pipeline = %(pipeline)s and observation.point = %(point)s
and observation.observed_at <= judged.opened_at
order by observation.observed_at desc limit 1
