"""Tests of conversations out of the store and into it."""
