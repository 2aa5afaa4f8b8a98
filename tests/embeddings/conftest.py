from support.process.one_core import on_one_core

__all__ = ["on_one_core"]
