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

-- incidents_of_log --
-- Read the incidents of one revision, and those of other windows, in their newest compared revisions, by which a log lost
-- records: with the times of their windows, oldest first.
select incident.number, incident.revision, noticed.start_time as start, noticed.end_time as end, noticed.opened_at,
    kind, point, topic, topic_id, partition, lo, hi, detail
from makewhole.incident join makewhole.window as noticed using (pipeline, number, revision)
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
union all
select incident.number, incident.revision, noticed.start_time as start, noticed.end_time as end, noticed.opened_at,
    kind, point, topic, topic_id, partition, lo, hi, detail
from makewhole.incident join makewhole.window as noticed using (pipeline, number, revision)
where pipeline = %(pipeline)s and number <> %(number)s
  and (kind in ('truncated', 'expired', 'beginning_gone') or detail ->> 'before_it_was_read' = 'true')
  and revision = (
    select max(result.revision) from makewhole.hop_result as result
    where result.pipeline = %(pipeline)s and result.number = incident.number and result.stage = 'reconciled'
)
order by number, revision, point, partition nulls first, lo nulls first, kind;
