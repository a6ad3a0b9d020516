"""Compiles what Python loads in the browser, when the site is built."""
