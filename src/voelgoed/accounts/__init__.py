"""Who is who: organizations, and later their people."""
