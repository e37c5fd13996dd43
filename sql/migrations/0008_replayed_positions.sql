-- Where the records of a Kafka chunk were written: noted before the transaction is committed, so that no record of ours
-- is ever committed at a position that the journal does not know. What an attempt noted and did not commit is replaced
-- by the next one; the offsets of an aborted record never hold a committed one.
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

-- The records of plans that began before are known by their headers alone.
alter table makewhole.plan add column keeps_positions boolean not null default true;
update makewhole.plan set keeps_positions = false where state not in ('frozen', 'awaiting_approval', 'approved');
