"""Streams of publications and of changes of subscriptions, on Spark Structured Streaming."""
