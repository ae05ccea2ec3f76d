-- Who signs in keeps what they held as a guest: whose a hold is may change, by one function of the registry and nothing else.

grant update (user_id) on seat_holds to voelgoed_registry;
-- Only a guest's holds are handed over; who is one stands with the people.
grant select (id, is_guest) on users to voelgoed_registry;
