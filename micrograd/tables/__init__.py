"""Tables: read by pandas, encoded and judged by scikit-learn, and reported on; what `micrograd train` stands on.

reading.py  a CSV file as a frame of pandas
study.py    which columns tell something, the rows to learn from and to test on, and the pipeline
models.py   pipelines saved so that loading them runs nothing
scores.py   how good a pipeline is, beside others
figures.py  the pictures of a report
report.py   its page and its folder
"""
