"""`python -m bnw.cli`: how a command starts a node process, whatever is on the PATH."""

from bnw.cli.main import main

main()
