"""How much of which prompts a step prefills, learned from what earlier steps took."""
