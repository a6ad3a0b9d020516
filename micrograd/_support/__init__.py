"""What the other packages stand on, and users never name."""
