"""Choices: which of some options, or which of some classes, each made by a decision list of scorers."""
