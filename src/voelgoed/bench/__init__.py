"""What things cost: a server of its own, load from outside, anchors beside it in the same run."""
