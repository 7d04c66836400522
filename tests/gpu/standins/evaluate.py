# SPDX-License-Identifier: Apache-2.0
"""In place of evaluate: no metric has a value."""


class _Metric:
    def add_batch(self, **kwargs):
        pass

    def compute(self, **kwargs):
        return {"accuracy": 0.0, "f1": 0.0}


def load(*args, **kwargs):
    return _Metric()
