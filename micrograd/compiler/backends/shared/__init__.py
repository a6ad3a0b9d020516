"""What backends have in common, and which there are."""
