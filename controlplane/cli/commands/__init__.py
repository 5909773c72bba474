"""Groups of commands, one file each: what is typed, which call it becomes, which columns are shown."""
