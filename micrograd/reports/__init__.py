"""Reports: how good a pipeline with a network is, on a page that shows it; what `micrograd train` and a demo write."""
