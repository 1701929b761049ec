"""Replies of the program itself, without a language model: by an encoder, small classifiers, and words."""
