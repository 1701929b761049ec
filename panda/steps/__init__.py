"""The steps of the pipeline: what each gives to whoever replies, and what a reply may hold."""
