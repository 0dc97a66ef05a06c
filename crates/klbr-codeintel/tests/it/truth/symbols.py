"""Tells the symbols of each file named on standard input, as the ast module sees them: one JSON line a file."""

import ast
import io
import json
import sys
import tokenize

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ACCESSORS = {"property", "cached_property", "abstractproperty", "getter"}


def last_name(node):
    node = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Attribute):
        return node.attr, True
    return (node.id, False) if isinstance(node, ast.Name) else ("", False)


def method_kind(node):
    for decorator in node.decorator_list:
        name, dotted = last_name(decorator)
        if name in ("staticmethod", "abstractstaticmethod"):
            return "static_method"
        if name in ("classmethod", "abstractclassmethod"):
            return "class_method"
        if name in ACCESSORS or (dotted and name in ("setter", "deleter")):
            return "property"
    return "method"


class Symbols(ast.NodeVisitor):
    def __init__(self, lines):
        self.lines, self.facts, self.scopes = lines, [], [("module", None, None)]

    def name_line(self, node):
        # The ast gives the line of `async`, `def` or `class`; the name stands on the same one unless a backslash is between.
        line = node.lineno
        while node.name not in self.lines[line - 1] and self.lines[line - 1].rstrip().endswith("\\"):
            line += 1
        return line

    def inside(self, scope, nodes):
        self.scopes.append(scope)
        for node in nodes:
            self.visit(node)
        self.scopes.pop()

    def function(self, node):
        inside_class = self.scopes[-1][0] == "class"
        kind = method_kind(node) if inside_class else "function"
        self.facts.append((self.name_line(node), kind, node.name))
        if inside_class:
            self.scopes[-1][2].add(node.name)
        for part in node.decorator_list + [node.args] + ([node.returns] if node.returns else []):
            self.visit(part)
        arguments = node.args.posonlyargs + node.args.args
        receiver = arguments[0].arg if arguments and kind in ("method", "property") else None
        members = self.scopes[-1][2] if inside_class else None
        self.inside((kind, receiver, members), node.body)

    visit_FunctionDef = visit_AsyncFunctionDef = function

    def visit_ClassDef(self, node):
        self.facts.append((self.name_line(node), "class", node.name))
        if self.scopes[-1][0] == "class":
            self.scopes[-1][2].add(node.name)
        for part in node.decorator_list + node.bases + node.keywords:
            self.visit(part)
        self.inside(("class", None, set()), node.body)

    def visit_Lambda(self, node):
        self.visit(node.args)
        self.inside(("lambda", None, None), [node.body])

    def visit_TypeAlias(self, node):
        self.facts.append((node.name.lineno, "alias", node.name.id))
        self.generic_visit(node)

    def bind(self, target, value):
        kind, receiver, members = self.scopes[-1]
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.bind(part, None)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, None)
        elif isinstance(target, ast.Name):
            if isinstance(value, ast.Lambda):
                self.facts.append((target.lineno, "lambda", target.id))
            elif kind in ("module", "class"):
                self.facts.append((target.lineno, "attribute", target.id))
            if kind == "class":
                members.add(target.id)
        elif isinstance(target, ast.Attribute) and receiver and members is not None:
            if isinstance(target.value, ast.Name) and target.value.id == receiver and target.attr not in members:
                members.add(target.attr)
                line = target.end_lineno
                self.facts.append((line, "attribute", target.attr))

    def visit_Assign(self, node):
        for target in node.targets:
            self.bind(target, node.value if len(node.targets) == 1 or target is node.targets[-1] else None)
        self.generic_visit(node)

    def visit_AnnAssign(self, node):
        self.bind(node.target, node.value)
        self.generic_visit(node)


for path in sys.stdin:
    path = path.rstrip("\n")
    try:
        with open(path, "rb") as file:
            data = file.read()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        tree = ast.parse(data)
        visitor = Symbols(data.decode(encoding).replace("\r\n", "\n").split("\n"))
        visitor.visit(tree)
        print(json.dumps(visitor.facts), flush=True)
    except (SyntaxError, ValueError, UnicodeDecodeError, RecursionError, LookupError):
        print("null", flush=True)
