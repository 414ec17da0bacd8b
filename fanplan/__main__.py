"""`python -m fanplan`."""

from fanplan.cli.main import main

main()
