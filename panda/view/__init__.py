"""Read-only pages over a store: served in the browser, or written as files."""
