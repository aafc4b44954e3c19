"""What bench/build.py measures: programs, in which ways they are built, by us and by others, and what comes out."""
