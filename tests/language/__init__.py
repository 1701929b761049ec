"""Tests of panda.language."""
