"""Models that speak: texts become speech. This package knows neither the wire nor the scheduler.

Each family of mlx-audio that was examined has a module. Others are refused.
"""
