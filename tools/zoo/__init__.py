"""What `tools/make_zoo.py` makes the model zoo from: definitions, and a tracer that counts."""
