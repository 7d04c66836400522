# SPDX-License-Identifier: Apache-2.0
"""The research programs: they fit the project's learned constants, measure it and judge it.

Each program is a module, `python3 -m colloc_fit.NAME` with this folder's parent on PYTHONPATH;
`scripts/fit-NAME`, `scripts/study-NAME` and `scripts/judge-NAME` run the same.

    fit_estimators     learned tables of the memory estimators, from data/memory
    fit_steps          constants of a training step's roofline, from data/steps
    fit_sharing        constants of the interference model, from data/sharing
    judge_predictive   the policy predictive against those of the dissertation
    study_collocation  the collocation study on real GPUs
    study_monitor      the monitoring study on a real GPU
    study_trace        a trace of tasks with real trainings, against the simulator

What the studies share:

    machine         the GPUs of this machine, a collocd, the command line of a study

What the fits share:

    algebra         ridge regression, order statistics, rank correlation, simplex descent
    memory_runs     the measured runs of data/memory and texts that describe their networks
    physics         colloc-physics, the C program that answers for the physical model
    quantiles       quantiles of the errors by evidence and kind of network, families left out
    residual        the learned correction, families left out
    tables          the .inc tables of src/estimator/physics and the tables of a page
"""
