"""Tables: read from CSV, turned into numbers, learned from, and reported on; what the command trains with.

table.py      a CSV file as rows of cells
encoding.py   columns as the numbers that a network takes and gives
predictor.py  a network with its columns: trained, saved, loaded, used
metrics.py    how good predictions are
plots.py      the pictures of a report
page.py       its page
report.py     its folder
"""
