"""The benchmarks of `lmwire bench`, one module for each name on the command line, and the parts that they measure."""
