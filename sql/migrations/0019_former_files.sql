-- What the pipeline's file said in windows before: the columns that were compared, and the hops that were judged. Both are
-- asked for what is other than now, however many windows there are.
create index compared_by on makewhole.window (pipeline, md5(configuration ->> 'compare'), number);
create index judged_hop on makewhole.hop_result (pipeline, hop, number) where stage = 'reconciled';
