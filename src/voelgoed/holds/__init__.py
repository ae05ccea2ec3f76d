"""The places of events: made when an event is published, changed with it, and counted. Nobody else writes them."""
