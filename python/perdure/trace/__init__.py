"""Memory traces of programs: record, import, look at."""
