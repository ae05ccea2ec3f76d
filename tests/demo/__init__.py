"""The crowd of a demonstration and the line to its parent."""
