# Parts of the library that it imports itself when they are first needed.
import ast, json, sys

sys.set_int_max_str_digits(0)
print(json.dumps({
    "unparse": ast.unparse(ast.parse("a  +  1")),
    "digits": len(str(10**20000)),
    "number": int("9" * 20000) % 7,
}))
