"""`python -m panda`: the program, where its script is not on the path."""

from panda.cli.main import main

if __name__ == "__main__":
    main()
