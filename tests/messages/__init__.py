"""Tests of panda.messages."""
