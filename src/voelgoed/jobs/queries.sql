-- name: lock_reader
-- system: take the place of a reader of the journal for this transaction; nothing when another process has it.
select true
  from journal_positions
 where reader = $1
   for update skip locked;

-- name: purge_log
-- system: forget what was logged about jobs longer ago than $1, a batch at a time. The library adds and never removes.
delete from pgqueuer_log
 where id in (
   select id
     from pgqueuer_log
    where created < now() - $1::interval
    order by created
    limit $2
      for update skip locked
 );

-- name: purge_statistics
-- system: forget the counts per second that are older than $1.
delete from pgqueuer_statistics
 where id in (
   select id
     from pgqueuer_statistics
    where created < now() - $1::interval
    limit $2
      for update skip locked
 );

-- name: purge_given_up
-- system: forget jobs that were given up longer ago than $1. Nobody has asked to run them again since.
delete from pgqueuer
 where id in (
   select id
     from pgqueuer
    where status = 'failed'
      and updated < now() - $1::interval
    limit $2
      for update skip locked
 );
