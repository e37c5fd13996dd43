-- The deployments of Airflow that judge pipelines.

-- wait_for_names --
-- Wait until no other task of any deployment names its own: of one deployment, two would choose two names.
select pg_advisory_xact_lock(hashtextextended('makewhole.pipeline_owner', 0));

-- owners --
-- Read who judges pipelines: `pipeline` alone, or all.
select pipeline, deployment, address, claimed_at, released_at, released_by from makewhole.pipeline_owner
where pipeline = %(pipeline)s or %(pipeline)s::text is null
order by pipeline;

-- claim_pipeline --
-- Note that a deployment judges a pipeline, unless another one does and has not been released.
insert into makewhole.pipeline_owner as owner (pipeline, deployment, address)
values (%(pipeline)s, %(deployment)s, %(address)s)
on conflict (pipeline) do update set deployment = excluded.deployment, address = excluded.address,
    claimed_at = case when owner.deployment = excluded.deployment then owner.claimed_at else clock_timestamp() end,
    released_at = null, released_by = null
where owner.released_at is not null
    or owner.deployment = excluded.deployment and owner.address <> excluded.address;

-- release_pipeline --
-- Release a pipeline: the next deployment that opens a window of it judges it from then on.
update makewhole.pipeline_owner set released_at = clock_timestamp(), released_by = %(by)s
where pipeline = %(pipeline)s and released_at is null
returning pipeline;
