"""The server process: its sockets, client connections, signals and shutdown."""
