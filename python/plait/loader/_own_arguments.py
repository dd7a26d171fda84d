"""Arguments that Plait's classes have besides those of PyTorch Geometric's."""

import functools
import inspect


def accepts(theirs, **own):
    """Returns a decorator of a constructor that stands in for the constructor `theirs`, whose documentation it
    takes on: its signature has the keywords `own` with their defaults, too."""
    signature = inspect.signature(theirs)
    parameters = list(signature.parameters.values())
    rest = [parameters.pop()] if parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
             for name, default in own.items()]

    def decorate(constructor):
        wrapped = functools.wraps(theirs)(constructor)
        wrapped.__signature__ = signature.replace(parameters=[*parameters, *named, *rest])
        return wrapped

    return decorate
