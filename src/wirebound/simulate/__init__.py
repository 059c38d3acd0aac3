"""What would happen: the engines, their prices, thresholds and sweeps."""
