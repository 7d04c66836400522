"""What a PyTorch training task will allocate, found without a GPU. See docs/export.md.

    from colloc_export import Task, export
    json.dump(export(Task(make_model, make_batch), batch=32), file)
"""
from .export import export
from .task import Task

__all__ = ["Task", "export"]
