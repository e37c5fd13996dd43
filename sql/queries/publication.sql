-- What is published once for everyone, window by window.

-- insert_publication --
-- Write a publication, unless its folder or its topic has one. It begins with the first window that was opened to be
-- published like this, or with this one: what is certified first need not be that.
insert into makewhole.publication (id, pipeline, point, root, topic, first_window)
select %(id)s, %(pipeline)s, %(point)s, %(root)s, %(topic)s, least(%(number)s, min(number))
from makewhole.window
where pipeline = %(pipeline)s and revision = 1 and configuration -> 'publish' -> %(point)s = %(wanted)s::jsonb
on conflict do nothing;

-- at_places --
-- Read the publications at a folder or a topic.
select id, pipeline, point, root, topic, first_window, topic_id, partitions, sent_chunks, sent_ends
from makewhole.publication
where root = %(root)s or (topic = %(topic)s and topic <> '');

-- of_pipeline --
-- Read the publications of a pipeline.
select id, pipeline, point, root, topic, first_window, topic_id, partitions, sent_chunks, sent_ends
from makewhole.publication where pipeline = %(pipeline)s order by point, began_at;

-- due_windows --
-- Read the certified windows that are not published yet as their newest revision has them, from the first one on.
select number, revision from makewhole.window
where pipeline = %(pipeline)s and is_newest and state = 'certified' and number >= (
    select first_window from makewhole.publication where id = %(publication)s
) and not exists (
    select from makewhole.published_window as done
    where done.publication = %(publication)s and done.number = makewhole.window.number
      and done.revision = makewhole.window.revision
)
order by number;

-- published_windows --
-- Read what was published, in its order, with the revocation of what no certificate proves any more.
select published.number, published.revision, ordinal, manifest, first_chunk, chunks, visible_at, decided_at,
    newest.revision as newest_revision, newest.state, revoked.revocation
from makewhole.published_window as published
join makewhole.window as newest
    on newest.pipeline = published.pipeline and newest.number = published.number and newest.is_newest
left join lateral (
    select jsonb_build_object(
        'ordinal', later.ordinal, 'sha256', later.sha256, 'uri', later.uri, 'because', later.body -> 'because',
        'issued_at', later.body -> 'issued_at'
    ) as revocation, bool_or(later.ordinal is null) over () as is_standing
    from makewhole.certificate as issued
    left join makewhole.certificate as later
        on (later.pipeline, later.revokes) = (issued.pipeline, issued.ordinal)
    where issued.pipeline = published.pipeline and issued.number = published.number
      and issued.revision = published.revision and issued.kind = 'certificate'
    order by later.ordinal desc nulls last limit 1
) as revoked on not revoked.is_standing
where publication = %(publication)s
order by ordinal;

-- published_files --
-- Read the files that manifests name, in the order in which they were published.
select files from makewhole.published_window
where publication = %(publication)s and ordinal = any(%(ordinals)s)
order by ordinal;

-- put_window --
-- Decide what is published of a revision of a window; what is decided stays.
insert into makewhole.published_window
    (publication, pipeline, number, revision, ordinal, manifest, files, first_chunk, chunks)
select %(publication)s, %(pipeline)s, %(number)s, %(revision)s, coalesce(max(ordinal), 0) + 1, %(manifest)s, %(files)s,
    coalesce(max(first_chunk + chunks), 0), %(chunks)s
from makewhole.published_window where publication = %(publication)s
on conflict (publication, number, revision) do nothing;

-- note_visible --
-- Note that the manifest of a revision of a window stands beside its files.
update makewhole.published_window set visible_at = clock_timestamp()
where publication = %(publication)s and number = %(number)s and revision = %(revision)s and visible_at is null;

-- note_partitions --
-- Note which topic it is to which records are sent, and how many partitions it has.
update makewhole.publication set topic_id = %(topic_id)s, partitions = %(partitions)s
where id = %(publication)s and partitions is null;

-- note_sent --
-- Follow the receipts of what was sent.
update makewhole.publication set sent_chunks = %(chunks)s, sent_ends = sent_ends || %(ends)s
where id = %(publication)s and sent_chunks < %(chunks)s;

-- claim_reports --
-- Note that a run reports what is published as a whole and is in no event yet. Return what its event has: that, and what
-- it has reported before.
update makewhole.published_window as done set reported_by = %(run)s
from makewhole.publication as at
where at.id = %(publication)s and done.publication = at.id and done.visible_at is not null
  and (at.topic = '' or done.first_chunk + done.chunks <= at.sent_chunks)
  and coalesce(done.reported_by, %(run)s) = %(run)s
returning done.number, done.revision;
