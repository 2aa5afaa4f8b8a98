"""Images, sounds, and a web server that has them."""
