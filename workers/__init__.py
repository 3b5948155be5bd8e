"""The import paths that RQ stores in Redis, and that stock tools of RQ take. The code behind them is `memd.workers`.

They are a wire format and stay as they are. memd itself never imports this package: another installed package of this
name, or a folder of the user's own, would be in its place.
"""
