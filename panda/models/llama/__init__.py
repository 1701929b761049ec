"""llama.cpp in process: library, weights, context, kept prefixes, model."""
