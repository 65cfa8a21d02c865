"""Python runs this file at its start in every process of a dry run, as its folder is the first in
PYTHONPATH. Whatever goes wrong here is said and leaves the script alone."""
import os
import sys


def run_next(here):
    """The sitecustomize that Python would have run without this one."""
    import importlib.util
    from importlib.machinery import PathFinder

    path = [entry for entry in sys.path if os.path.realpath(entry or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("FRAGLAB_DRYRUN"):
    try:
        import fraglab_dryrun

        fraglab_dryrun.prepare()
    except Exception as error:
        print("fraglab: the dry run cannot record in this process: %r" % error, file=sys.stderr)
run_next(os.path.dirname(os.path.realpath(__file__)))
