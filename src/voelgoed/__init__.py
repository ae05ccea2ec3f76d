"""VoelgoedEvents: a multi-tenant seat-reservation and event engine."""
