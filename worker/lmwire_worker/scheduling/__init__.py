"""The order in which requests are started, and the loop that runs one step of the model after another."""
