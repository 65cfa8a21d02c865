"""Where a script decides by a value that it reads from the device: the line is a condition, or what it
assigns is in one, in the same function or in that to which it is returned."""
import ast
import functools
import linecache
import os

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# What is called where something went wrong, or to tell it: such a branch makes no other requests.
WORDS = {"exit", "_exit", "print", "warn", "warning", "error", "info", "debug", "critical", "write", "log", "quit"}


def is_word(statement):
    """A statement that raises, prints or ends the script."""
    if isinstance(statement, (ast.Raise, ast.Pass)):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return isinstance(call, ast.Constant)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in WORDS


def conditions_of(scope):
    """The conditions in a function that decide what it does, the names in them, and the nodes of the function."""
    nodes, waiting = [], list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if not isinstance(node, SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    tests, deciding = [], set()
    for node in nodes:
        if isinstance(node, ast.If) and all(is_word(part) for part in node.body + node.orelse):
            continue
        if isinstance(node, (ast.If, ast.While)):
            tests.append(node.test)
            deciding |= names_in(node.test)
        elif isinstance(node, COMPREHENSIONS):
            ifs = [test for part in node.generators for test in part.ifs]
            tests.extend(ifs)
            deciding |= names_of(ifs) - names_of(part.target for part in node.generators)
    return tests, deciding, nodes


def names_of(parts):
    return set().union(*map(names_in, parts))


def names_in(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def lines_of(node):
    return range(node.lineno, node.end_lineno + 1)


def targets_of(statement):
    targets = getattr(statement, "targets", None) or [statement.target]
    return names_of(targets)


@functools.lru_cache(maxsize=None)
def tree_of(path):
    """The syntax tree of a file; an empty one where it is no Python."""
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return ast.Module([], [])


@functools.lru_cache(maxsize=None)
def kinds_of(path):
    """By line of a file: "decides" or "returns"."""
    kinds = {}
    for scope in ast.walk(tree_of(path)):
        if not isinstance(scope, SCOPES):
            continue
        tests, deciding, nodes = conditions_of(scope)
        returns = [node for node in nodes if isinstance(node, ast.Return)]
        returned = names_of(returns)
        for node in returns:
            kinds.update(dict.fromkeys(lines_of(node), "returns"))
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
                names = targets_of(node)
                kind = "decides" if names & deciding else "returns" if names & returned else None
                if kind is not None:
                    kinds.update(dict.fromkeys(lines_of(node), kind))
        for test in tests:
            kinds.update(dict.fromkeys(lines_of(test), "decides"))
    return kinds


def place_of(frame, is_library):
    """The line of the script that decides by what is read in a frame, as "train.py:17", or None."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not is_library(path):
            kind = kinds_of(path).get(frame.f_lineno)
            if kind != "returns":
                return "%s:%d" % (os.path.basename(path), frame.f_lineno) if kind else None
        frame = frame.f_back
    return None
