"""Reports: how good a pipeline with a network is, on a page that shows it; what `micrograd train` and a demo write.

scores.py   on the test rows, and in folds beside others
figures.py  its pictures, drawn by scikit-learn's displays
page.py     the page, and the folder that it stands in
"""
