"""The client's end of the protocol, without input or output: the session, the events and the features."""
