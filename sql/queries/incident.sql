-- Incidents of the logs.

-- put_incident --
-- Write an incident; one that is found again at the same place is replaced.
insert into makewhole.incident
    (pipeline, number, revision, kind, point, topic, topic_id, partition, lo, hi, detail)
values
    (%(pipeline)s, %(number)s, %(revision)s, %(kind)s, %(point)s, %(topic)s, %(topic_id)s, %(partition)s, %(lo)s,
     %(hi)s, %(detail)s)
on conflict (pipeline, number, revision, kind, point, topic_id, coalesce(partition, -1), coalesce(lo, -1),
    coalesce(detail ->> 'group', ''))
do update set hi = excluded.hi, detail = excluded.detail, found_at = excluded.found_at;

-- incidents --
-- Read the incidents of one revision, in the order of the log.
select kind, point, topic, topic_id, partition, lo, hi, detail
from makewhole.incident
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
order by point, partition nulls first, lo nulls first, kind;

-- incidents_of_pipeline --
-- Read the incidents of every revision of every window, oldest first.
select number, revision, kind, point, topic, topic_id, partition, lo, hi, detail
from makewhole.incident
where pipeline = %(pipeline)s
order by number, revision, point, partition nulls first, lo nulls first, kind;
