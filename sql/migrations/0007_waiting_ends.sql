-- When each handed-over key was first judged pending: the S1 of that window. How long those from before have waited is
-- only known from the window that handed them over last.
alter table makewhole.handover add column since timestamptz;
update makewhole.handover set since = opened_at
from makewhole.window as opened
where (opened.pipeline, opened.number, opened.revision) = (handover.pipeline, from_number, from_revision);
update makewhole.handover set since = clock_timestamp() where since is null;
alter table makewhole.handover alter column since set not null;

-- Consumer groups of several hops can stand at one place of a topic.
drop index makewhole.incident_once;
create unique index incident_once on makewhole.incident
    (pipeline, number, revision, kind, point, topic_id, coalesce(partition, -1), coalesce(lo, -1),
     coalesce(detail ->> 'group', ''));
