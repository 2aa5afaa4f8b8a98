"""The decoder process: a program that decodes images and sounds, and imports nothing else of lmwire.

Decoders are native code that reads hostile files. They can crash, and no thread can interrupt them. The process limits
its own time and memory for each file, and the worker kills it when the request of a file ends. It imports a library at
its first file of a format, so that it starts fast.
"""
