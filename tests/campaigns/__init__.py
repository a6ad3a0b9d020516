"""Long runs that look for what the tests have not found; each is a command."""
