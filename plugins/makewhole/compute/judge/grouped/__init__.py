"""Judge rows that are each made of all records of their key: by what they count and add up."""
