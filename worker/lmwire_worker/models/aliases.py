"""Short names of models that many people run."""

from typing import Final

ALIASES: Final = {
    "gemma": "mlx-community/gemma-3-4b-it-4bit",
    "gemma-3-1b": "mlx-community/gemma-3-1b-it-4bit",
    "gemma-3-4b": "mlx-community/gemma-3-4b-it-4bit",
    "llama-3.1-8b": "mlx-community/Meta-Llama-3.1-8B-Instruct-4bit",
    "llama-3.2-1b": "mlx-community/Llama-3.2-1B-Instruct-4bit",
    "llama-3.2-3b": "mlx-community/Llama-3.2-3B-Instruct-4bit",
    "mistral-7b": "mlx-community/Mistral-7B-Instruct-v0.3-4bit",
    "phi-4": "mlx-community/phi-4-4bit",
    "qwen": "mlx-community/Qwen3.5-4B-MLX-4bit",
    "qwen2.5-0.5b": "mlx-community/Qwen2.5-0.5B-Instruct-4bit",
    "qwen2.5-7b": "mlx-community/Qwen2.5-7B-Instruct-4bit",
    "qwen2.5-coder-7b": "mlx-community/Qwen2.5-Coder-7B-Instruct-4bit",
    "qwen3-0.6b": "mlx-community/Qwen3-0.6B-4bit",
    "qwen3-1.7b": "mlx-community/Qwen3-1.7B-4bit",
    "qwen3-4b": "mlx-community/Qwen3-4B-4bit",
    "qwen3-8b": "mlx-community/Qwen3-8B-4bit",
    "qwen3-14b": "mlx-community/Qwen3-14B-4bit",
    "qwen3-30b": "mlx-community/Qwen3-30B-A3B-4bit",
    "smollm2-135m": "mlx-community/SmolLM2-135M-Instruct",
}
"""Hub ids by alias, in lower case."""
