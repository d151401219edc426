"""Pages of the site, and what draws and writes some of them."""
