"""The commands of the command line, one file each; they print, the rest of the package does not."""
