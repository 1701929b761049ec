"""Conversations: saved turns as tests and transcripts, and those of other programs as turns."""
