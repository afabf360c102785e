"""The window: the only part of cstormpy that loads Qt, run in a process of its own by `cstormpy.live.LiveFeed`."""
