"""The command line of all commands of lmwire. It imports argparse and nothing else, so that every help is quick."""
