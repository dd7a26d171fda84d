"""Edges as the C++ operations take them: the forms that callers may give are converted once, and kept for as long as the
callers' tensors live unchanged."""
