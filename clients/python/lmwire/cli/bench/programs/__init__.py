"""The programs that the benchmarks start and compare: the worker, the model libraries and HTTP servers."""
