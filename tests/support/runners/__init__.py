"""Parts of a worker driven by a test: model runners, the scheduler, prompts and answers."""
