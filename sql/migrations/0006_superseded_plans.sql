-- Which revision of the window ended a plan, as data and not only as a sentence.
alter table makewhole.plan add column superseded_by integer check (superseded_by > revision);
update makewhole.plan set superseded_by = substring(reason from '^superseded by revision ([0-9]+)$')::integer
where state = 'rejected' and reason ~ '^superseded by revision [0-9]+$';
