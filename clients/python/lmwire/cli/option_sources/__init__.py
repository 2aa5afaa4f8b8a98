"""Options of a command from the command line, environment variables and the config file, in this order."""

from lmwire_protocol.command_line import Flag

from .config_file import ConfigFile, InvalidConfigFile, config_path, read_config_file
from .parser import SourcedParser
from .setting import Setting, WrongType

__all__ = [
    "ConfigFile",
    "Flag",
    "InvalidConfigFile",
    "Setting",
    "SourcedParser",
    "WrongType",
    "config_path",
    "read_config_file",
]
