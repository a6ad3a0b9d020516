"""What docs/build.py builds the site with.

pages.py        the pages: which there are, their order, and where their links lead on the site
cells.py        the Python blocks of a page, those that run on it, and what they gave when the site was built
record.py       runs the cells of one page, in a process of its own
runner.py       runs a cell and shows what it gives: here, and on the page
figures.py      what matplotlib draws with there
reference.py    the reference, from the docstrings
home.py         the training of the home page, with what is in home/
packages.py     Pyodide, Graphviz and the editor: from npm, each with its digest
ahead/          compiles what Python loads in the browser
live/           what runs in the browser
"""
