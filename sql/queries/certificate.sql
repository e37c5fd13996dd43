-- The chain of a pipeline: its certificates and their revocations.

-- last --
-- Read the newest entry of the chain.
select ordinal, number, revision, digest, body, previous, sha256, uri, issued_at, kind, revokes, signed_by, signature
from makewhole.certificate where pipeline = %(pipeline)s order by ordinal desc limit 1;

-- insert --
-- Add an entry to the chain.
insert into makewhole.certificate
    (pipeline, number, revision, ordinal, digest, body, previous, sha256, uri, kind, revokes, signed_by, signature)
values
    (%(pipeline)s, %(number)s, %(revision)s, %(ordinal)s, %(digest)s, %(body)s, %(previous)s, %(sha256)s, %(uri)s,
     %(kind)s, %(revokes)s, %(signed_by)s, %(signature)s);

-- entry --
-- Read one entry.
select ordinal, number, revision, digest, body, previous, sha256, uri, issued_at, kind, revokes, signed_by, signature
from makewhole.certificate where pipeline = %(pipeline)s and ordinal = %(ordinal)s;

-- of_revision --
-- Read the newest certificate of one revision.
select ordinal, number, revision, digest, body, previous, sha256, uri, issued_at, kind, revokes, signed_by, signature
from makewhole.certificate
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and kind = 'certificate'
order by ordinal desc limit 1;

-- revoked_by --
-- Read the entry that revokes another one.
select ordinal from makewhole.certificate where pipeline = %(pipeline)s and revokes = %(ordinal)s;

-- last_revocation --
-- Read the newest revocation of a certificate of a window.
select later.ordinal, later.number, later.revision, later.digest, later.body, later.previous, later.sha256, later.uri,
    later.issued_at, later.kind, later.revokes, later.signed_by, later.signature
from makewhole.certificate issued
join makewhole.certificate later on (later.pipeline, later.revokes) = (issued.pipeline, issued.ordinal)
where issued.pipeline = %(pipeline)s and issued.number = %(number)s and issued.kind = 'certificate'
order by later.ordinal desc limit 1;

-- standing --
-- Read the certificates of a window that no entry revokes, oldest first.
select ordinal, number, revision, digest, body, previous, sha256, uri, issued_at, kind, revokes, signed_by, signature
from makewhole.certificate issued
where pipeline = %(pipeline)s and number = %(number)s and kind = 'certificate'
  and not exists (
    select from makewhole.certificate later where later.pipeline = issued.pipeline and later.revokes = issued.ordinal
)
order by ordinal;

-- chain --
-- Read the whole chain, oldest first.
select ordinal, number, revision, digest, body, previous, sha256, uri, issued_at, kind, revokes, signed_by, signature
from makewhole.certificate where pipeline = %(pipeline)s order by ordinal;

-- ends --
-- Read the state in which each revision of each window is.
select number, revision, state from makewhole.window where pipeline = %(pipeline)s order by number, revision;

-- gaps_after --
-- Read the newest later revision of a window that ended with gaps.
select max(revision) from makewhole.window
where pipeline = %(pipeline)s and number = %(number)s and revision > %(revision)s and state = 'gaps';

-- revocations_after --
-- Read the revocations that came after an entry, oldest first.
select ordinal, number, revision, digest, body, previous, sha256, uri, issued_at, kind, revokes, signed_by, signature
from makewhole.certificate
where pipeline = %(pipeline)s and kind = 'revocation' and ordinal > %(ordinal)s order by ordinal;

-- watermark --
-- Read the newest entry of the chain, and the last window up to which every one has a certificate that stands.
select head.ordinal as head, head.sha256, proven.number as window, proven.end_time as until
from (
    select ordinal, sha256 from makewhole.certificate where pipeline = %(pipeline)s order by ordinal desc limit 1
) as head
left join lateral (
    select number, end_time from makewhole.window
    where pipeline = %(pipeline)s and is_newest and number < coalesce((
        select later.number from makewhole.window as later
        where later.pipeline = %(pipeline)s and later.is_newest and later.state <> 'certified' and not exists (
            select from makewhole.certificate as issued
            where issued.pipeline = later.pipeline and issued.number = later.number and issued.kind = 'certificate'
              and not exists (
                select from makewhole.certificate as revocation
                where revocation.pipeline = issued.pipeline and revocation.revokes = issued.ordinal
            )
        )
        order by later.number limit 1
    ), 2147483647)
    order by number desc limit 1
) as proven on true;
