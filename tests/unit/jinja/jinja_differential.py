"""Compares our template engine with jinja2 on hand-written and random templates.

usage: jinja_differential.py TEMPLATE_TOOL [SEED [COUNT]]

Both must give the same text, or both must refuse. jinja2 accepts more than we do (it prints lists, it takes any
value for a condition), so the generator stays within the subset, apart from names that do not exist.
"""

import json
import random
import re
import subprocess
import sys

import jinja2
import jinja2.lexer


class IndentingLexer(jinja2.lexer.Lexer):
    """Our one addition: a value that is first on its line carries the line's blanks to its further lines.

    It is expressed in jinja2's own terms, as one more filter on the outputs concerned.
    """

    def tokeniter(self, *arguments, **keywords):
        line = ""  # the template's current line so far, as seen in the raw tokens
        before = ""  # the blanks between the start of the line and the next token, if that is all there is
        output = None  # the tokens of the output that is open
        for number, kind, value in super().tokeniter(*arguments, **keywords):
            if kind == "variable_begin":
                output, blanks = [], "" if value.endswith("-") else before
            elif kind == "variable_end":
                if blanks and self.last_filter(output) != "indent":
                    for word in (("operator", "|"), ("name", "keep_indentation"), ("operator", "("),
                                 ("string", '"%s"' % blanks), ("operator", ")")):
                        yield (number, *word)
                output = None
            elif output is not None and kind != "whitespace":
                output.append(value)
            before = ""
            if kind == "data":
                tail = value.rsplit("\n", 1)
                if (len(tail) == 2 or not line) and not tail[-1].strip():
                    before = tail[-1]
            line = (line + value).rsplit("\n", 1)[-1]
            yield number, kind, value

    @staticmethod
    def last_filter(words):
        pipes = [i for i, word in enumerate(words) if word == "|"]
        return words[pipes[-1] + 1] if pipes else None


class Environment(jinja2.Environment):
    lexer = property(IndentingLexer)


def keep_indentation(value, blanks):
    first, *rest = str(value).split("\n")
    return "\n".join([first] + [blanks + line if line else line for line in rest])


def c_string(value):
    def escape(byte):
        character = chr(byte)
        if character in '"\\':
            return "\\" + character
        return character if " " <= character <= "~" and character != "?" else "\\%03o" % byte

    return '"' + "".join(map(escape, value.encode())) + '"'


def c_ident(value):
    return "_".join(re.findall("[a-z0-9]+", ascii_case(value, str.lower)))[:40].rstrip("_")


def comment(value):
    def escape(byte):
        character = chr(byte)
        return character if " " <= character <= "~" and character not in "*\\?%" else "%%%02X" % byte

    text = "".join(map(escape, value.encode()))
    return text[:-1] + "%2F" if text.endswith("/") else text


def html(value):
    for character, entity in zip("&<>\"'", ("&amp;", "&lt;", "&gt;", "&quot;", "&#39;")):
        value = value.replace(character, entity)
    return value


def ascii_case(value, function):
    return "".join(function(character) if character < "\x80" else character for character in value)


FILTERS = {
    "keep_indentation": keep_indentation,
    "c_string": c_string,
    "c_ident": c_ident,
    "comment": comment,
    "html": html,
    "hex": lambda value, digits=1: "0x%0*x" % (digits, value),
    "upper": lambda value: ascii_case(value, str.upper),
    "lower": lambda value: ascii_case(value, str.lower),
}

DATA = {
    "word": "Relu",
    "path": "/layer1/Conv*2?\\x/",
    "lines": "first\n  second\n\nfourth\n",
    "quoted": "\"it's\" <b> & \t\u00e9 100%",
    "nothing": "",
    "count": 12345,
    "zero": 0,
    "large": 18446744073709551615,
    "negative": -7,
    "yes": True,
    "no": False,
    "layer": {"name": "conv\n1", "size": 64, "fused": True, "inner": {"name": "deep", "flag": False}},
    "words": ["alpha", "beta\nbeta", "gamma"],
    "numbers": [3, 1, 4],
    "empty": [],
    "layers": [
        {"name": "a", "size": 1, "fused": True, "parts": ["p", "q"]},
        {"name": "b\nb", "size": 2, "fused": False, "parts": []},
        {"name": "c", "size": 3, "fused": True, "parts": ["r"]},
    ],
}


class Generator:
    """Random templates of the subset over DATA."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def template(self, includes):
        self.includes = includes
        names = {
            "text": ["word", "path", "lines", "quoted", "nothing", "layer.name", "layer.inner.name"],
            "integer": ["count", "zero", "large", "negative", "layer.size"],
            "natural": ["count", "zero", "large", "layer.size"],
            "flag": ["yes", "no", "layer.fused", "layer.inner.flag"],
            "list": ["words", "numbers", "empty"],
            "layers": ["layers"],
        }
        return self.body(names, 4)

    def body(self, names, depth):
        makers = [self.text] * 6 + [self.output] * 4 + [self.comment]
        if depth > 0:
            makers += [self.condition] * 2 + [self.loop] * 2
        if self.includes:
            makers.append(self.include)
        return "".join(self.random.choice(makers)(names, depth) for _ in range(self.random.randint(0, 7)))

    def text(self, names, depth):
        return self.random.choice(["int x;", "\n", "\n", "\n  ", "  ", "\t", " ", "}", "{ ", "a\n\n", "\r\n", "%", "# ",
                                   "\u00e9", "%}", "}}\n", "-", "  y = "])

    def blanks(self):
        return self.random.choice(["", " ", " ", " ", "  ", "\n "])

    def tag(self, content):
        return ("{%" + self.random.choice(["", "", "", "", "-", "+"]) + self.blanks() + content + self.blanks() +
                self.random.choice(["", "", "", "", "-", "+"]) + "%}")

    def output(self, names, depth):
        return ("{{" + self.random.choice(["", "", "", "-", "+"]) + " " + self.value(names) + self.blanks() +
                self.random.choice(["", "", "", "-"]) + "}}")

    def value(self, names):
        pick = self.random.choice
        kind = self.random.randrange(10)
        if kind == 0:
            return pick(["missing", "layer.missing", "layer.inner.missing.name", "words.missing"])
        if kind == 1:
            return pick(['"a b"', "'%}'", '"}}"', '"\\n\\t\\"\\\\"', "'it\\'s'", "42", "0", '"" | c_string'])
        if kind == 2:
            return pick(names["integer"])
        if kind == 3:
            return pick(names["natural"]) + pick([" | hex", "|hex(8)", " | hex( 3 ) | upper"])
        if kind == 4:
            return pick(names["list"]) + pick([" | join", " | join(', ')", "|join(word)", " | join('\\n') | indent"])
        text = pick(names["text"])
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            text += " | " + pick(["upper", "lower", "indent", "indent(2)", "indent(3, true)", "indent(0, no)", "c_ident",
                                  "c_string", "comment", "html"])
        return text

    def comment(self, names, depth):
        return ("{#" + self.random.choice(["", "-", "+"]) + self.random.choice([" note ", "", "\n{{ x }}\n", " {% if "]) +
                self.random.choice(["", "-", "+"]) + "#}")

    def flag(self, names, depth=3):
        kind = self.random.randrange(6) if depth > 0 else 0
        if kind <= 2:
            return self.random.choice(names["flag"] * 6 + ["missing"])
        if kind == 3:
            return "not " + self.flag(names, depth - 1)
        operator = " and " if kind == 4 else " or "
        text = self.flag(names, depth - 1) + operator + self.flag(names, depth - 1)
        return "(" + text + ")" if self.random.random() < 0.5 else text

    def condition(self, names, depth):
        text = self.tag("if " + self.flag(names)) + self.body(names, depth - 1)
        for _ in range(self.random.choice([0, 0, 1, 2])):
            text += self.tag("elif " + self.flag(names)) + self.body(names, depth - 1)
        if self.random.random() < 0.5:
            text += self.tag("else") + self.body(names, depth - 1)
        return text + self.tag("endif")

    def loop(self, names, depth):
        variable = self.random.choice(["item", "entry", "element"])
        inner = {kind: [name for name in entries if name.split(".")[0] != variable] for kind, entries in names.items()}
        for kind, members in (("integer", ["index", "index0"]), ("natural", ["index", "index0"]),
                              ("flag", ["first", "last"])):
            inner[kind] = [n for n in inner[kind] if not n.startswith("loop.")] + ["loop." + m for m in members]
        over = self.random.choice(names["layers"] + names["list"])
        if over in names["layers"]:
            inner["text"].append(variable + ".name")
            inner["natural"].append(variable + ".size")
            inner["flag"].append(variable + ".fused")
            inner["list"].append(variable + ".parts")
        elif over == "numbers":
            inner["natural"].append(variable)
        else:
            inner["text"].append(variable)
        return self.tag("for %s in %s" % (variable, over)) + self.body(inner, depth - 1) + self.tag("endfor")

    def include(self, names, depth):
        return self.tag("include " + self.random.choice(["'part.j2'", '"other.j2"']))


FIXED = [
    "", "\n", "{{ word }}\n", "{% if yes %}\nx\n{% endif %}\ny\n", "  {% if yes %}  \n  x\n  {% endif %}\n",
    "a {%- if yes -%} b {%- endif -%} c", "{% for w in words %}{{ w }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for w in words -%}\n  {{ w }}\n{%- endfor %}", "  {{ lines }}|\n\t{{ lines }}|", "x  {{ lines }}", "  {{- lines }}",
    "{% if yes %}  {{ lines }}{% endif %}", "{% if yes %}\n  {{ lines }}{% endif %}", "  {{ lines | indent(2) }}",
    "{# c #}  {{ lines }}", "{# c #}\n  {{ lines }}", "{#- c -#}  {{ lines }}", "{{ word }}  {{ lines }}",
    "{{ '}}' }}{{ \"%}\" }}", "{{ missing }}", "{{ layer.missing }}", "{% if missing %}{% endif %}",
    "{% if yes or missing %}a{% endif %}", "{% if no and missing %}a{% else %}b{% endif %}", "{% for x in missing %}{% endfor %}",
    "{{ word", "{% if yes", "{# open", "{% if yes %}", "{% endif %}", "{% else %}", "{% for x in words %}{% endif %}",
    "{{ }}", "{{ word | }}", "{{ word | nosuch }}", "{{ 'open }}", "{{ (word }}", "{{ word) }}", "{{ . }}", "{{ word word }}",
    "{% include 'nosuch' %}", "{% include 'part.j2' %}", "  {% include 'part.j2' %}\nx", "{% for %}{% endfor %}", "{% nosuch %}",
    "{% if %}{% endif %}", "{% if yes %}{% else %}{% else %}{% endif %}", "{% for word in words %}{{ word }}{% endfor %}{{ word }}", "{{ 007 }}",
    "{%+ if yes %} x {%+ endif +%}\n", " {%+ if yes %} x {% endif +%}\n", "{% if yes %}\r\nx\r\n{% endif %}\r", "a\r\rb",
]


def expected(case):
    environment = Environment(loader=jinja2.DictLoader(case["templates"]), trim_blocks=True, lstrip_blocks=True,
                              keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(FILTERS)
    try:
        return {"text": environment.get_template(case["main"]).render(case["data"])}
    except (jinja2.TemplateError, TypeError) as problem:  # "%x" % undefined is a TypeError
        return {"error": "%s: %s" % (type(problem).__name__, problem)}


def make_cases(seed, count):
    part = "{{ word }} {{ lines }}\n"
    for text in FIXED:
        yield {"templates": {"main.j2": text, "part.j2": part}, "main": "main.j2", "data": DATA}
    generator = Generator(seed)
    for _ in range(count):
        templates = {name: generator.template(includes=False) for name in ("part.j2", "other.j2")}
        templates["main.j2"] = generator.template(includes=True)
        yield {"templates": templates, "main": "main.j2", "data": DATA}


def main(tool, seed=1, count=1500):
    cases = list(make_cases(int(seed), int(count)))
    requests = "".join(json.dumps(case) + "\n" for case in cases)
    answers = subprocess.run([tool], input=requests.encode(), stdout=subprocess.PIPE, check=True).stdout
    answers = [json.loads(line) for line in answers.decode().splitlines()]
    assert len(answers) == len(cases), "the tool answered %d of %d" % (len(answers), len(cases))
    failures = refusals = 0
    for case, actual in zip(cases, answers):
        wanted = expected(case)
        refusals += "error" in wanted
        same = wanted["text"] == actual.get("text") if "text" in wanted else "error" in actual
        if not same:
            failures += 1
            if failures <= 5:
                print("DIFFERENT", json.dumps(case["templates"], indent=1), "jinja2:  ", wanted, "gcompile:", actual, sep="\n")
    print("%d templates, %d refused by both, %d different" % (len(cases), refusals, failures))
    # A generator that made only broken templates, or no broken ones, would prove little.
    assert len(cases) * 0.05 < refusals < len(cases) * 0.7, "the generator is out of balance"
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
