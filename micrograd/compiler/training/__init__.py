"""The steps of fit as compiled programs."""
