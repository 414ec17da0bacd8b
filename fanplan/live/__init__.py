"""Clients that follow a plan. They need what an export wrote, and neither the dataset nor Spark."""
