"""Classes that are made while a program runs: each is derived from the class of an object, has its name, and takes
its place. Copies of such an object are of the made class. A pickle has the object as its own class has it, which
another process can look up."""

import copy

_MADE = "_plait_made"


def derived(cls, members):
    """Returns a subclass of a class, with these members, of the same name, module and documentation."""
    made = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__, _MADE: True, **members})
    return pickled_as(cls, made)


def is_made(cls):
    """Returns whether derived() has made the class."""
    return _MADE in vars(cls)


def pickled_as(plain, made):
    """Lets objects of `made`, a subclass of `plain`, be pickled as objects of `plain`. Returns `made`. If it has a
    method `_plain_state`, that returns the attributes that the plain object has."""

    def reduce_ex(self, protocol):
        if type(self) is not made:
            return super(made, self).__reduce_ex__(protocol)
        same = object.__new__(plain)
        same.__dict__.update(self._plain_state() if hasattr(self, "_plain_state") else self.__dict__)
        # By the way of protocol 1: that of later ones demands an object of the class that it names.
        return same.__reduce_ex__(min(protocol, 1))

    def copied(self, change):
        make, arguments, state, *_ = (*super(made, self).__reduce_ex__(4), None)
        new = make(*arguments)
        return new, state if change is None else change(new, state)

    def shallow(self):
        return _with_state(*copied(self, None))

    def deep(self, memo):
        def change(new, state):
            memo[id(self)] = new
            return copy.deepcopy(state, memo)

        return _with_state(*copied(self, change))

    made.__reduce_ex__ = reduce_ex
    for name, method in (("__copy__", shallow), ("__deepcopy__", deep)):
        if not hasattr(plain, name):
            setattr(made, name, method)
    return made


def _with_state(new, state):
    if hasattr(new, "__setstate__"):
        new.__setstate__(state)
    elif state:
        new.__dict__.update(state)
    return new
