"""The contract between the scheduler and the models, and what all kinds of models share. Knows neither wire nor MLX."""
