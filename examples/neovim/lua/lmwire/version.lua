--- The version of the plugin, which is that of lmwire.
return "0.2.0"
