"""What a demonstration has beside an installation: a crowd that buys, and a panel to trouble it with."""
