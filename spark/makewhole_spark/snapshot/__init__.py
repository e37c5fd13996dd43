"""Take the snapshots of a window: read every point once, normalise, hash and bucket it where it is read."""
