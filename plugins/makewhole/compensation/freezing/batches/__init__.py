"""Make a plan batch by batch: what it is made of is in files of this machine, and in memory only the places in them."""
