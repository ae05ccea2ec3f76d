-- Every hold ends once, and its second version stands in these indexes as well, beside the first: where a page has no room
-- for it, PostgreSQL looks in vain for versions nobody needs and then splits it. The indexes become no larger in the end.
alter index seat_holds_pkey set (fillfactor = 50);
alter index seat_holds_of_user set (fillfactor = 50);
