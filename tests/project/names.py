#!/usr/bin/env python3
"""Whatever a model calls things, the emitted project is the same code: names reach it as identifiers of [a-z0-9_] and
in comments and strings that they cannot leave.

    names.py --gcompile GCOMPILE [CASE...]
"""

import html.parser
import re

from onnx_bytes import FLOAT, Graph
from support import WARNINGS, World, c_compiler, check, compilers, equal, library_sources, manifest, run_main

HOSTILE = {
    "comment_end": "a*/int injected;/*",
    "newline": "a\nint injected;\r\nb\x0bc\x0cd\x85e\u2028f",
    "backslash": "a\\",
    "backslash_newline": "a\\\nint injected;",
    "trigraph": "a??/",
    "trigraph_quote": "??/\"??'??<??>??=",
    "nul": b"a\0int injected;\0",
    "long": "n" * 100_000,
    "long_wide": "\u00e4" * 50_000,
    "non_ascii": "\u00fcn\u00efc\u00f6d\u00e9\u202e\u65e5\u672c\u8a9e\U0001f600",
    "quote": 'a"; int injected; "',
    "semicolon": "a;b",
    "cmake": "${X}$ENV{PATH}$<1:x>@X@",
    "make": "$(shell touch injected)#",
    "parenthesis": ")) + f((",
    "template": "{{ name }}{% if x %}{# y #}",
    "html": "</svg></td><script>injected()</script>&amp;",
    "json": '","injected":"',
    "format": "%s%n%d{}{0}",
    "keyword": "for",
    "keyword_class": "class",
    "macro": "NULL",
    "own_name": "plain_run",
    "reserved": "__LINE__",
    "digits": "1234",
    "space": "  ",
    "dot": "../../etc/passwd",
    "raw_string": ')"',
    "line_comment": "//",
    "include": "\n#include \"/etc/passwd\"\n",
}


def model(names):
    """A convolution, arithmetic that fuses, a reduction, a gather that is checked at run time, and a branch; `names`
    gives each thing its name."""
    graph = Graph(names("graph"))
    x = graph.input(names("input"), FLOAT, [1, 2, 6, 6])
    where = graph.input(names("where"), 7, [3])
    choose = graph.input(names("choose"), 9, [])
    weights = graph.constant(names("weights"), FLOAT, [4, 2, 3, 3], [0.01 * i for i in range(72)])
    bias = graph.constant(names("bias"), FLOAT, [4], [0.5, -0.5, 0.25, 1.0])
    graph.node("Conv", [x, weights, bias], [names("conv")], names("conv_node"), documentation=names("documentation"),
               pads=[1, 1, 1, 1])
    graph.node("Sigmoid", [names("conv")], [names("sigmoid")], names("sigmoid_node"))
    graph.node("Mul", [names("conv"), names("sigmoid")], [names("swish")], names("mul_node"))
    graph.node("Gather", [names("swish"), where], [names("gather")], names("gather_node"), axis=2)
    graph.node("ReduceMean", [names("gather")], [names("mean")], names("mean_node"), axes=[3], keepdims=0)
    branches = []
    for operator in ("Exp", "Neg"):
        branch = Graph(names(operator + "_graph"))
        branch.node(operator, [names("mean")], [names(operator)], names(operator + "_node"))
        branch.output(names(operator), FLOAT, [1, 4, 3])
        branches.append(branch)
    graph.node("If", [choose], [names("output")], names("if_node"), then_branch=branches[0], else_branch=branches[1])
    graph.node("Tanh", [names("conv")], [names("second")], names("tanh_node"))
    graph.output(names("output"), FLOAT, [1, 4, 3])
    graph.output(names("second"), FLOAT, [1, 4, 6, 6])
    return graph.model(producer=names("producer"), documentation=names("description"))


def plain(what):
    return what


def hostile(name):
    """Every thing has the hostile name and its own; they must differ, and both ends must be hostile."""
    if isinstance(name, str):
        name = name.encode()
    return lambda what: name + what.encode() + name


TOKEN = re.compile(rb"""
    (?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<char>'(?:\\.|[^'\\\n])*')|
    (?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\.?[0-9](?:[eEpP][+-]|['.A-Za-z0-9_])*)|(?P<blank>\s+)|
    (?P<other>.)""", re.VERBOSE | re.DOTALL)


def splice(text):
    """Phases 1 and 2 of translation: trigraphs are not replaced in gnu++17, but are in c++17 and c99."""
    for letter, character in zip(b"=/'()!<>-", b"#\\^[]|{}~"):
        text = text.replace(b"??" + bytes([letter]), bytes([character]))
    return text.replace(b"\\\n", b"")


def tokens(path):
    """The tokens that a compiler sees, without comments and with strings and numbers as such."""
    found = []
    for match in TOKEN.finditer(splice(path.read_bytes())):
        if match.lastgroup in ("comment", "blank"):
            continue
        if match.lastgroup == "string" and found and found[-1][0] == "string":
            found[-1] = ("string", found[-1][1] + match.group())  # one literal, in pieces
        else:
            found.append((match.lastgroup, match.group()))
    return found


IDENTIFIER = re.compile(rb"[A-Za-z0-9_]+")
DIGEST = re.compile(rb"0x(?:[0-9a-f]{8}|[0-9a-f]{16}u)")


def is_digest(before):
    """Whether a name stands in a text, whose comments hold names, or is one of the file: by the tokens in front of it."""
    return any(word in text for _, text in before for word in (b"MARK", b"STRUCTURE"))


def check_same_tokens(one, other, path):
    """The same tokens, where identifiers may differ from place to place by their readable part only, always in the
    same way. Strings may differ: they hold names. So may digests."""
    equal(len(one), len(other), f"tokens of {path}")
    renamed = {}
    for index, ((kind, text), (other_kind, other_text)) in enumerate(zip(one, other)):
        equal(other_kind, kind, f"kind of a token in {path}, {text[:80]!r} or {other_text[:80]!r}")
        if text == other_text and kind != "word":
            continue
        if kind == "word":
            check(renamed.setdefault(text, other_text) == other_text,
                  f"{path}: {text!r} has two names, {renamed[text][:80]!r} and {other_text[:80]!r}")
            check(IDENTIFIER.fullmatch(other_text) and len(other_text) < 200, f"{path}: identifier {other_text[:300]!r}")
        elif not (DIGEST.fullmatch(text) and DIGEST.fullmatch(other_text) and is_digest(one[max(0, index - 6):index])):
            equal(kind, "string", f"{path}: token {text[:80]!r} became {other_text[:80]!r}")


class Tags(html.parser.HTMLParser):
    """The elements of a page with their attributes, in order."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        self.found.append(tag)


def check_bytes(project):
    """Everything but the page is printable ASCII, and lines of code stay within 110 columns but for strings and
    directives. Two files keep names whole: the manifest, and the source that holds what plain_describe() returns."""
    for path in sorted(project.rglob("*")):
        if path.is_dir() or path.suffix in (".bin", ".npy"):
            continue
        text = path.read_text(encoding="utf-8")
        odd = re.search("[^\t\n -~]+" if path.suffix != ".html" else "[\0-\x08\x0b-\x1f\x7f-\x9f]+", text)
        check(odd is None, f"{path.name}: {odd.group()[:80] if odd else None!r} is not plain text")
        if path.suffix in (".h", ".hpp", ".c", ".cpp"):
            for line in text.split("\n"):
                check(len(line) <= 110 or '"' in line or line.startswith("#"), f"{path.name}: beyond 110 columns: {line[:300]}")
        longest = max(map(len, text.split("\n")), default=0)
        check(longest < 2_000 or path.name in ("plain.json", "plain_api.cpp"), f"{path.name}: a line of {longest} characters")


def compile_project(world: World, names, folder, *flags):
    source = world.path(f"{folder}.onnx")
    source.write_bytes(model(names))
    world.compile(source, world.path(folder), "--name", "plain", *flags)
    return world.path(folder)


def check_name(world, title, reference, level):
    project = compile_project(world, hostile(HOSTILE[title]), f"{title}{level}", level)
    equal(sorted(path.relative_to(project).as_posix() for path in project.rglob("*")),
          sorted(path.relative_to(reference).as_posix() for path in reference.rglob("*")), f"{title}: files")
    check_bytes(project)
    for path in sorted(project.rglob("*")):
        if path.suffix not in (".h", ".hpp", ".cpp", ".c", ".S") or path.is_dir():
            continue
        name = path.relative_to(project)
        check_same_tokens(tokens(reference / name), tokens(path), f"{title}: {name}")
    equal(Tags((project / "report.html").read_text(encoding="utf-8")).found,
          Tags((reference / "report.html").read_text(encoding="utf-8")).found, f"{title}: elements of report.html")
    equal(list(manifest(project, "plain")), list(manifest(reference, "plain")), f"{title}: keys of the manifest")
    for name in ("CMakeLists.txt", "Makefile", "LICENSE"):
        equal((project / name).read_bytes(), (reference / name).read_bytes(), f"{title}: {name}")
    return project


def compile_quickly(world, project, compiler):
    """Every source once, without code: warnings are what counts. The kernels, which hold names as identifiers alone, by
    one compiler."""
    for source in library_sources(project, "plain"):
        if source.suffix == ".cpp" and (compiler == "g++" or "kernels" not in source.name):
            done = world.run([compiler, "-std=c++17", *WARNINGS, "-Wcomment", "-O0", "-fsyntax-only", f"-I{project}",
                              f"-I{project}/include", source])
            equal(done.stderr, "", source.name)
    header = world.path("header.c")
    header.write_text('#include "plain/plain.h"\nint main(void) { return 0; }\n', encoding="utf-8")
    done = world.run([c_compiler(compiler), "-std=c99", "-pedantic", *WARNINGS, "-Wcomment", "-fsyntax-only",
                      f"-I{project}/include", header])
    equal(done.stderr, "", "plain.h")


def case_tokens(world):
    for level in ("-O3", "-O0"):
        reference = compile_project(world, plain, f"reference{level}", level)
        for title in HOSTILE:
            check_name(world, title, reference, level)


def case_lines(world):
    """Emitted code is no wider than 110 columns, every kernel says which nodes it computes, and the README shows names as
    they are."""
    for name, flags in (("shapes_classifier", ()), ("streaming_denoiser", ()), ("tiny_attention", ("--target", "cuda")), ("storyteller", ())):
        project = world.example(name, f"lines_{name}", "--name", "plain", *flags)
        sources = [*project.glob("src/*.c*"), *project.glob("src/*.h"), *project.glob("include/*/*.h*"), *project.glob("apps/*")]
        for path in sources:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                check(len(line) <= 110, f"{path.name}:{number} has {len(line)} columns: {line}")
        kernels = "".join(path.read_text(encoding="utf-8") for path in sources if "_kernels" in path.name)
        broken = re.search(r"\n[^\n]*\w<[^<>();\n]*,\n[^\n]*", kernels)
        check(broken is None, f"a line breaks between the arguments of a template: {broken and broken.group()}")
        functions = set(re.findall(r"^(?:void|bool) (\w+)\(", kernels, re.MULTILINE))
        told = re.findall(r"^// [^\n]* '[^\n]*(?:\n// [^\n]*)*->", kernels, re.MULTILINE)
        check(len(functions) >= 3 and len(told) >= len(functions), f"{name}: {len(told)} comments of kernels {functions}")
    readme = (world.path("lines_streaming_denoiser") / "README.md").read_text(encoding="utf-8")
    check("&#95;" not in readme and "<code>cache_in</code>" in readme, readme)


def case_compiles(world):
    reference = compile_project(world, plain, "reference", "-O3")
    for title in HOSTILE:
        project = check_name(world, title, reference, "-O3")
        for compiler in compilers():
            compile_quickly(world, project, compiler)


# Not taken from the compiler's own table: ISO/IEC 9899:2024 6.4.1, ISO/IEC 14882 [lex.key] and [lex.digraph] of
# C++98 to the draft of C++26, macros of their libraries, and types that the header uses.
RESERVED = """
    auto break case char const continue default do double else enum extern float for goto if int long register return
    short signed sizeof static struct switch typedef union unsigned void volatile while inline restrict alignas alignof
    bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual _Bool _Complex _Imaginary
    _Alignas _Alignof _Atomic _BitInt _Decimal32 _Decimal64 _Decimal128 _Generic _Noreturn _Static_assert _Thread_local
    asm catch char8_t char16_t char32_t class co_await co_return co_yield concept const_cast consteval constinit
    contract_assert decltype delete dynamic_cast explicit export friend mutable namespace new noexcept operator private
    protected public reinterpret_cast requires static_cast template this throw try typeid typename using virtual
    wchar_t final override import module pre post trivially_relocatable_if_eligible replaceable_if_eligible
    and and_eq bitand bitor compl not not_eq or or_eq xor xor_eq
    NULL EOF assert complex imaginary errno stdin stdout stderr offsetof noreturn setjmp va_arg va_copy va_end va_start
    math_errhandling isnan isinf signbit unreachable kill_dependency linux unix
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t""".split()
STANDARDS = {"c": ["c99", "c11", "c17", "c2x", "gnu17"], "c++": ["c++17", "c++20", "c++2b", "gnu++20"]}
# The header beside all that a product may have included before.
USES = {"c": "#include <complex.h>\n#include <stdalign.h>\n#include <stdbool.h>\n#include <stdnoreturn.h>\n",
        "c++": "#include <complex>\n#include <cmath>\n"}
BOTH = "#include <assert.h>\n#include <errno.h>\n#include <setjmp.h>\n#include <stdarg.h>\n#include <stddef.h>\n" \
       "#include <stdint.h>\n#include <stdio.h>\n"


def case_reserved_words(world):
    """Inputs and outputs called as the languages' own words: the header compiles in every language and standard."""
    graph = Graph("reserved")
    for word in RESERVED:
        # The bytes of each type of the header follow a member of that name.
        graph.node("Relu" if not word.endswith("8_t") else "Identity",
                   [graph.input(word, 2 if word.endswith("8_t") else FLOAT, [2])], [word + ":out"])
        graph.output(word + ":out", 2 if word.endswith("8_t") else FLOAT, [2])
        # An output of the very word as well.
        graph.node("Identity", [word], [f"{word} "])
        graph.output(f"{word} ", 2 if word.endswith("8_t") else FLOAT, [2])
    source = world.path("reserved.onnx")
    source.write_bytes(graph.model())
    project = world.path("project")
    world.compile(source, project, "--name", "plain")
    for compiler in compilers():
        for language, standards in STANDARDS.items():
            program = c_compiler(compiler) if language == "c" else compiler
            for standard in standards:
                text = BOTH + USES[language] + '#include "plain/plain.h"\n'
                text += '#include "plain/plain.hpp"\n' if language == "c++" else ""
                unit = world.path("unit.c" if language == "c" else "unit.cpp")
                unit.write_text(text + "int main(void) { return 0; }\n")
                world.run([program, f"-std={standard}", *WARNINGS, "-fsyntax-only", f"-I{project}/include", unit])
    compile_quickly(world, project, "g++")
    # The same words as names of whole models.
    for word in ("complex", "requires", "concept", "typeof", "char8_t", "bool", "xor", "uint8_t"):
        world.run([world.gcompile, source, "-o", world.path("x"), "--name", word], status=2)
        check(not world.path("x").exists(), f"--name {word} left something behind")


def case_all_at_once(world):
    """Every thing has another hostile name; the program runs and says the names again in its description."""
    kinds = list(HOSTILE.values())

    def names(what):
        number = sum(what.encode())
        name = kinds[number % len(kinds)]
        return (name.encode() if isinstance(name, str) else name) + what.encode()

    project = compile_project(world, names, "mixed", "--selftest")
    check_bytes(project)
    build = world.path("build")
    world.run(["cmake", "-S", project, "-B", build, "-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Debug"])
    world.run(["cmake", "--build", build])
    world.run([build / "plain_run", "--random", "1"])
    world.run(["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error"])


def case_description_keeps_names(world):
    """plain_describe() gives back the very bytes of a name, up to a NUL."""
    for title in ("comment_end", "newline", "backslash", "trigraph_quote", "non_ascii", "quote", "format", "raw_string"):
        project = compile_project(world, hostile(HOSTILE[title]), title)
        source = world.path(f"{title}.cpp")
        source.write_text('#include <cstdio>\n#include "plain/plain.h"\n'
                          "int main() {\n"
                          "  const char* name = plain_describe()->outputs[0].name;\n"
                          '  for (; *name != 0; ++name) std::printf("%02x", static_cast<unsigned char>(*name));\n}\n',
                          encoding="utf-8")
        program = world.path(f"{title}_program")
        world.run(["g++", "-std=c++17", "-O0", f"-I{project}", f"-I{project}/include", f"-I{project}/data", source,
                   *library_sources(project, "plain"), "-o", program])
        text = HOSTILE[title].encode()
        equal(bytes.fromhex(world.run([program]).stdout), text + b"output" + text, f"{title}: name of the output")


def case_colliding_names(world):
    """Names that differ only in what identifiers cannot hold, or are all empty where they may be."""
    graph = Graph("")
    graph.input("a b", FLOAT, [4])
    graph.input("a_b", FLOAT, [4])
    graph.input("A_B", FLOAT, [4])
    graph.input("a\tb", FLOAT, [4])
    graph.node("Sum", ["a b", "a_b", "A_B", "a\tb"], ["a.b"])
    graph.node("Exp", ["a.b"], ["a-b"])
    graph.output("a.b", FLOAT, [4])
    graph.output("a-b", FLOAT, [4])
    source = world.path("collide.onnx")
    source.write_bytes(graph.model())
    world.compile(source, world.path("collide"), "--name", "plain")
    for compiler in compilers():
        compile_quickly(world, world.path("collide"), compiler)


def case_token_check_detects(world):
    reference, bad = world.path("a.h"), world.path("b.h")
    for text, other in ((b"/* a */ int a;", b"/* a*/int injected;/* */ int a;"), (b"// a\nint b;", b"// a??/\nint b;"),
                        (b'f("a");', b'f("a", "b");'), (b"int a = 1;", b"int a = 2;"), (b"a + a;", b"b + c;")):
        reference.write_bytes(text)
        bad.write_bytes(other)
        try:
            check_same_tokens(tokens(reference), tokens(bad), "b.h")
        except Exception:  # pylint: disable=broad-except
            continue
        check(False, f"{other!r} passes for {text!r}")


if __name__ == "__main__":
    run_main(globals())
