-- limit_idle --
-- Make the server end the transaction of a client that stopped, and a statement that hangs, and have its times in UTC; for
-- this transaction only.
select set_config('idle_in_transaction_session_timeout', %(milliseconds)s::text, true) as idle,
    set_config('statement_timeout', %(statement_milliseconds)s::text, true) as statement,
    set_config('timezone', 'UTC', true) as timezone

-- limit_statements --
-- Make the server end a statement that hangs, and have its times in UTC; for the session.
select set_config('statement_timeout', %(milliseconds)s::text, false) as statement,
    set_config('timezone', 'UTC', false) as timezone

-- acquire_lease --
-- Take the lease when it is free, expired, or held under the same name; every take-over raises the epoch.
insert into makewhole.lease as held (resource, holder, epoch, expires_at)
values (%(resource)s, %(holder)s, 1, clock_timestamp() + %(seconds)s * interval '1 second')
on conflict (resource) do update
set holder = excluded.holder, epoch = held.epoch + 1, expires_at = excluded.expires_at
where held.expires_at <= clock_timestamp() or held.holder = excluded.holder
returning epoch

-- renew_lease --
-- Extend the lease, and hold its row locked until commit: no row means that another runner took over.
update makewhole.lease
set expires_at = clock_timestamp() + %(seconds)s * interval '1 second'
where resource = %(resource)s and epoch = %(epoch)s
returning epoch

-- release_lease --
-- Free the lease for the next runner at once; the epoch stays, so that an old runner stays fenced.
update makewhole.lease
set expires_at = clock_timestamp()
where resource = %(resource)s and epoch = %(epoch)s

-- lease_of --
-- Read who holds a resource, for messages.
select holder, epoch, expires_at from makewhole.lease where resource = %(resource)s
