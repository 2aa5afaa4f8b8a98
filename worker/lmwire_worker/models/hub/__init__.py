"""Models of the hub: found in its cache on this machine, downloaded, and removed."""
