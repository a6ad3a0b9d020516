"""Tables: read by pandas, encoded by scikit-learn, and saved by skops; what `micrograd train` learns from.

reading.py  a CSV file as a frame of pandas
study.py    which columns tell something, the rows to learn from and to test on, and the pipeline
models.py   pipelines saved so that loading them runs nothing
schema.py   what the file of a model describes, as plain data
"""
