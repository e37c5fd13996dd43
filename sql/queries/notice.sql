-- What was sent to people, by pipeline and channel.

-- add_channel --
-- Add a channel, unless it is there.
insert into makewhole.notice_channel (pipeline, channel) values (%(pipeline)s, %(channel)s) on conflict do nothing;

-- lock_channel --
-- Lock a channel until the transaction ends; no row where another one sends through it.
select channel from makewhole.notice_channel
where pipeline = %(pipeline)s and channel = %(channel)s for update skip locked;

-- sent --
-- Read what was sent through a channel.
select subject, fingerprint, said, first_said_at, said_at from makewhole.notice
where pipeline = %(pipeline)s and channel = %(channel)s order by first_said_at, subject;

-- note --
-- Write that a subject was sent.
insert into makewhole.notice as known (pipeline, channel, subject, fingerprint, said, first_said_at, said_at)
values (%(pipeline)s, %(channel)s, %(subject)s, %(fingerprint)s, %(said)s, %(at)s, %(at)s)
on conflict (pipeline, channel, subject) do update
set fingerprint = excluded.fingerprint, said = excluded.said, said_at = excluded.said_at;

-- forget --
-- Remove what is over.
delete from makewhole.notice
where pipeline = %(pipeline)s and channel = %(channel)s and subject = any(%(subjects)s);

-- failed --
-- Write why nothing could be sent; null: something was.
update makewhole.notice_channel
set reason = %(reason)s,
    failed_at = case when %(reason)s::text is null then null else coalesce(failed_at, clock_timestamp()) end
where pipeline = %(pipeline)s and channel = %(channel)s;

-- failing --
-- Read the channels through which nothing can be sent.
select pipeline, channel, reason, failed_at as since from makewhole.notice_channel where failed_at is not null
order by failed_at;
