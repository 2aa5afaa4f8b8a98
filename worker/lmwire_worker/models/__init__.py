"""Model folders: found, fetched, checked before they are loaded, and measured."""
