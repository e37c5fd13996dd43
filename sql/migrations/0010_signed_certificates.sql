-- Certificates are signed, and one that no longer holds is revoked by an entry of its own.
alter table makewhole.certificate
    drop constraint certificate_pkey,
    drop constraint certificate_pipeline_ordinal_key,
    add primary key (pipeline, ordinal),
    add column kind text not null default 'certificate' check (kind in ('certificate', 'revocation')),
    add column revokes integer,
    add column signed_by text,
    add column signature text,
    add unique (pipeline, revokes),
    add foreign key (pipeline, revokes) references makewhole.certificate (pipeline, ordinal),
    add check ((kind = 'revocation') = (revokes is not null)),
    add check (revokes < ordinal),
    add check ((signed_by is null) = (signature is null));

create unique index certificate_of_revision on makewhole.certificate (pipeline, number, revision)
where kind = 'certificate';
