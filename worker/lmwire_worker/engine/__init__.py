"""The engine: loads models, schedules requests and runs one step after another. Knows neither wire nor MLX."""
