"""Measuring: a training job as it runs, and the network under it. torch is imported here only."""
