"""klbr's Python side: hooks that an owner writes, the processes that run them, the default policies."""
