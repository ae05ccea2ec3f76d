"""Venues, gates and events: what takes place, where and when, and what its status allows."""
