"""Experiments that are tracked with the real libraries."""
