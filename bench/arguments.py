"""Types of arguments of benchmarks, for argparse: what is wrong is told in one line."""
import argparse


def numbers(text):
    """'1,2,4' as numbers from 1 on, ascending."""
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError:
        found = [0]
    if found[0] < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers above 0, with commas")
    return found


def positive(text):
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return found


def share(text):
    found = positive(text)
    if found > 1:
        raise argparse.ArgumentTypeError(f"'{text}' is above 1")
    return found


def count(text):
    found = positive(text)
    if found != int(found):
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number")
    return int(found)


def some_of(names):
    def words(text):
        unknown = [word for word in text.split(",") if word not in names]
        if unknown:
            raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(names)}")
        return text.split(",")
    return words
