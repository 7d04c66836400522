# SPDX-License-Identifier: Apache-2.0
"""The evaluation of the dissertation's chapter 6, run by `colloc simulate`: scripts/evaluate.

inputs.py   the traces and the tasks
runs.py     runs of the simulator and their results
chapter6.py the settings of every table and figure
report.py   the page
"""
