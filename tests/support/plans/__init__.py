"""Requests, machines and plans that are made up, and orders of workers."""
