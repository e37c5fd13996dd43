-- What a window's hops came to: counts, digests and files, after reconcile and after verify.

-- lock_results --
-- Let one process at a time commit the results of a revision; rows that refer to the window can be written meanwhile.
select from makewhole.window
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
