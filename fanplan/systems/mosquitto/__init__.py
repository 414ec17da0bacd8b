"""Mosquitto: a broker is a server, a link is a bridge that lists what crosses it."""
