"""Evaluation: data sets, the systems that are compared, measures with intervals, and the report."""
