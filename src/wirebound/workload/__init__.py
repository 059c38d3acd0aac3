"""What a training step needs."""
