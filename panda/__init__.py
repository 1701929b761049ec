"""Answer questions from plain files, every claim bound to a file on disk."""

__version__ = "0.4.0"
