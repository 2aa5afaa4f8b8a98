"""`python -P -m lmwire_worker.device_memory`: print the memory of the device that models run on, as JSON."""

import json
import sys


def main() -> None:
    """Print the default memory of all models together and the free memory, in bytes, and the name of the device."""
    try:
        from .models.device_memory import default_budget, device_name, free_bytes
    except ImportError as error:  # mlx is not installed, or is installed without its Linux backend
        sys.exit(f"MLX cannot be imported: {error}")
    print(json.dumps({"budget_bytes": default_budget(), "free_bytes": free_bytes(), "device": device_name()}))


if __name__ == "__main__":
    main()
