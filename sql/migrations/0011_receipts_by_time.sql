-- What was written lately is found without a look at what was ever written.
create index chunk_observed_at on makewhole.chunk (observed_at);
