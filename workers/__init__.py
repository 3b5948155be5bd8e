"""The import paths that RQ stores in Redis and that RQ's own tools take. The code behind them is `memd.workers`.

They are a wire format and do not change. memd itself never imports this package, because another installed package or
a folder of the same name could shadow it.
"""
