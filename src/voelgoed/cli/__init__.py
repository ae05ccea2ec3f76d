"""The command `voelgoed`."""
