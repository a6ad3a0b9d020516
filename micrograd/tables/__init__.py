"""Tables: read by pandas, encoded by scikit-learn, and saved by skops; what `micrograd train` learns from."""
