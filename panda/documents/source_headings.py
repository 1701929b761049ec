"""The headings under which 2.2 sees loaded documents, one a kind of source (S1 §13.1)."""

SESSION_MEMORY = "SESSION MEMORY - USER PREFERENCES"
STORED = "STORED USER PREFERENCES"
CACHED = "CACHED INTELLIGENCE (Phase 1)"
FOREVER = "FOREVER MEMORY (Persistent Knowledge)"
TURNS = "RELEVANT PRIOR TURNS"
HEADINGS = (SESSION_MEMORY, STORED, CACHED, FOREVER, TURNS)
"""Every heading, the most important documents first."""
