from . import modules


class Parameter:
    pass
