"""PyTorch Geometric's classes, known by their own names and the modules that define them. The names in its public
namespaces may stand for other classes, as where a script has put Plait's there. It is not imported: if an object is
of one of its classes, its module has been imported already."""

from plait._made_classes import is_made


def is_theirs(value, name):
    """Returns whether the value is an instance of PyTorch Geometric's class of that name."""
    return any(_is_class(cls, name) for cls in type(value).__mro__)


def name_of_theirs(value):
    """Returns the name of the value's class if torch_geometric.nn defines it; None for other classes and for
    subclasses."""
    cls = type(value)
    return cls.__name__ if cls.__module__.startswith("torch_geometric.nn.") and not is_made(cls) else None


def _is_class(cls, name):
    return cls.__name__ == name and cls.__module__.startswith("torch_geometric.") and not is_made(cls)
