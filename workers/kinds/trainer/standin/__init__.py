"""Modules that a user's script imports in place of an installed tracker."""
