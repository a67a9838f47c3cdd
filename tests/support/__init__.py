"""What several tests share: worlds, journals, stand-ins for workers. Everybody imports it as `support`."""
