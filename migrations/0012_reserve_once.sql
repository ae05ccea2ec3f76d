-- Where asks came from is written by the function that grants them: a call inside a call had a price, and no reason.
-- Functions are made by holds/functions.sql; what they were is dropped here.

-- squawk-ignore ban-drop-function
drop function if exists reserve_told(
  uuid, uuid, integer[], uuid[], uuid[], integer[], uuid[], uuid[], uuid[], uuid[], inet[], text[], text[], text[],
  boolean[], text[], bytea[], uuid[], uuid[], inet[], text[]
);
-- squawk-ignore ban-drop-function
drop function if exists reserve_batch(
  uuid, uuid, integer[], uuid[], uuid[], integer[], uuid[], uuid[], uuid[], uuid[], inet[], text[], text[], text[],
  boolean[], text[], bytea[]
);
