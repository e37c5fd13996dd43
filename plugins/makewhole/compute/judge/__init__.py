"""Judge the keys of a hop: verdicts by copies or by versions, what cannot be known, causes and evidence."""
