# SPDX-License-Identifier: BSD-3-Clause
"""Random loop nests in C, for random_nests.py: each program is a few nests that share arrays.

The arrays are those of nests.h: a, b and c are doubles, which may be the same array, or parts of
one; f floats, index integers below `cells`, points structs. A nest runs over a box of them; what it
reads and writes, in which order and under which conditions, is drawn at random.

With one thread, any nest may be a parallel loop of OpenMP: it is run in order, and its arrays may
be the same. With several, nests have no races: each element is written by one iteration, which
alone reads it, and sums are of whole numbers. BESIDE: so are they, and a part of a nest may be run
by a thread that the program starts, while the main thread runs the other.
"""

from __future__ import annotations

from random import Random

INNER = "i"
BESIDE = -1  # threads


class NestGenerator:
    """Text of one nest, as statements over a, b, c, f, index, points, m1, m2, m3, s and sum."""

    def __init__(self, random: Random, threads: int = 0):
        self.random = random
        self.threads = threads
        self.row = random.choice(["n1", "m1"])
        self.plane = random.choice(["n2", "m2"])
        self.integer = random.choice(["int", "long", "long", "unsigned", "short"])

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def at(self, di: int = 0, dj: int = 0, dk: int = 0) -> str:
        def shifted(name: str, by: int) -> str:
            return name if by == 0 else f"({name} {'+' if by > 0 else '-'} {abs(by)})"

        k, j, i = shifted("k", dk), shifted("j", dj), shifted("i", di)
        return f"[({k} * {self.plane} + {j}) * {self.row} + {i}]"

    def neighbour(self) -> str:
        shift = [0, 0, 0]
        shift[self.random.randrange(3)] = self.random.choice([-1, 1])
        return self.at(*shift)

    def term(self, target: str) -> str:
        """Something that is read."""
        return self.pick(
            f"{target}{self.at()}", f"{target}{self.at()}", f"b{self.at()}", f"c{self.at()}",
            f"b{self.neighbour()}", "s", "0.125", f"c[index{self.at()}]", f"(double)f{self.at()}",
            f"points{self.at()}.x", f"{target}{self.neighbour()}", "(double)(i % 5)",
        )

    def simple_term(self, target: str) -> str:
        return self.pick(f"{target}{self.at()}", f"b{self.at()}", f"c{self.at()}", "s", "0.75",
                         f"b{self.neighbour()}", f"(double)f{self.at()}")

    def value(self, target: str) -> str:
        term = self.simple_term if self.random.random() < 0.7 else self.term
        return self.pick(
            f"0.5 * {term(target)} + 0.25 * {term(target)}",
            f"{term(target)}",
            f"0.5 * {term(target)} - 0.125 * {term(target)} * s",
            f"fabs({term(target)})",
            f"sqrt(fabs({term(target)}) + 1)",
            f"sin({term(target)})",
            f"small({term(target)}, {term(target)})",
            f"({term(target)} > 0 ? {term(target)} : {term(target)})",
        )

    def loop(self, name: str, low: str, high: str, body: str) -> str:
        kind = self.pick("up", "up", "up", "down", "while", "until")
        integer = "long" if name != INNER and kind == "down" else self.integer
        if kind == "down":
            integer = self.pick("int", "long")
            return f"for ({integer} {name} = {high} - 1; {name} >= {low}; --{name}) {{\n{body}\n}}"
        if kind == "while" and "continue" not in body:
            return f"{integer} {name} = {low};\nwhile ({name} < {high}) {{\n{body}\n++{name};\n}}"
        if kind == "until":
            return f"for ({integer} {name} = {low}; {name} != {high}; ++{name}) {{\n{body}\n}}"
        return f"for ({integer} {name} = {low}; {name} < {high}; ++{name}) {{\n{body}\n}}"

    def strided(self, body: str) -> str:
        step = self.random.choice([2, 3])
        return f"for (int i = 1; i + {step} < {self.row}; i += {step}) {{\n{body}\n}}"

    def update(self) -> str:
        return f"a{self.at()} = {self.value('a')};"

    def statement(self) -> str:
        """The body of the innermost loop."""
        update = self.update()
        return self.random.choice([
            update, update, update, update,
            f"{update}\nb{self.at()} = {self.value('b')};",
            f"{update}\nsum += a{self.at()};",
            f"{update}\nb{self.at()} = {self.value('b')};\nc{self.at()} = a{self.at()} * 0.5;",
            f"{update}\nb{self.at()} = s;\nif (c{self.at()} > 0) sum += a{self.at()};",
            f"const double before = a{self.at()};\n{update}\n"
            f"c{self.at()} = before + a{self.at()};",
            f"if ({self.term('a')} > 0.25) {{ {update} }}",
            f"if ({self.term('b')} > 0.25) {{ sum += a{self.at()}; }}\n{update}",
            f"{update}\nif (a{self.at()} > 0.5) sum += a{self.at()} * 0.5;",
            f"if ({self.term('b')} > 1.9) break;\n{update}",
            f"{update}\nif (a{self.at()} > 1.95) continue;\nb{self.at()} += 0.25;",
            f"a{self.at()} += s;\na{self.at()} *= 0.5;",
            f"f{self.at()} = (float)({self.value('b')});",
            f"f{self.at()} = f{self.at()} * 0.5f + 1;\n{update}",
            f"index{self.at()} = (index{self.at()} + i) % cells;",
            f"a[index{self.at()}] = {self.value('b')};",
            f"points{self.at()}.x = {self.value('b')};",
            f"points{self.at()}.x = {self.value('b')};\npoints{self.at()}.y = s;\n"
            f"points{self.at()}.tag += i;",
            f"points{self.at()} = points{self.neighbour()};",
            f"struct point p = points{self.at()};\np.x = {self.value('a')};\np.y += 0.5;\n"
            f"p.tag++;\n"
            f"points{self.at()} = p;",
            f"points{self.at()} = (struct point){{b{self.at()}, points{self.at()}.x, 3}};",
            f"a{self.at()} = {self.value('a')};\na{self.at(1)} = s;",
            {"n1": "a[4 + i] = a[i];", "m1": "a[i] = a[i + 3];"}.get(self.row, "a[i] = a[i / 2];"),
            *(self.part() for _ in range(8)),
            f"{update}\nbump(i % 4);",
            f"if (i == 7) stir(i);\n{update}",
        ])

    def part(self) -> str:
        """Stores to some of an element's bytes, or on a condition."""
        member = self.pick("x", "y", "tag")
        other = self.pick("x", "y", "tag")
        point = f"points{self.at()}"
        update = self.update()
        condition = self.pick(f"{self.term('a')} > 0.25", f"a{self.at()} > 0", "i % 3 != 1",
                              f"{point}.tag % 2 == 0", f"index{self.at()} > 100", "s > 0")
        return self.random.choice([
            f"{point}.{member} = {self.value('a')};",
            f"{point}.{member} = {point}.{other} * 0.5 + {self.term('b')};",
            f"{point}.{member} += {point}.{other};\n{update}",
            f"{point}.x = {self.value('b')};\n{point}.tag = i;",
            f"{point}.y = {point}.x + points{self.neighbour()}.{other};",
            f"if ({condition}) {point}.{member} = {self.value('b')};",
            f"if ({condition}) {point}.x = {self.value('b')};\nelse {point}.y += 1;",
            f"{point}.x = s;\nif ({condition}) {point}.{other} = {point}.x * 0.5;",
            f"if ({condition}) {{ {update} }}",
            f"if ({condition}) {{ {update} }}\nsum += a{self.at()};",
            f"if ({condition}) a{self.at()} = {self.value('a')};\nelse b{self.at()} = s;",
            f"if ({condition}) {{ {update} }}\nelse a{self.at()} = 0.5 * a{self.at()} - s;",
            f"{update}\nif ({condition}) a{self.at()} = a{self.at()} * 0.25;",
            f"const double before = a{self.at()};\nif ({condition}) {{ {update} }}\n"
            f"b{self.at()} = before + a{self.at()};",
            f"if ({condition}) f{self.at()} = (float)({self.value('b')});\n"
            f"c{self.at()} = f{self.at()} * 0.5;",
            f"if ({condition}) index{self.at()} = (index{self.at()} + 7) % cells;\n{update}",
            f"if ({condition}) continue;\n{update}",
        ])

    def rows(self) -> str:
        """The body of the loop over j: one or two inner loops, or a copy of a row."""
        row = f"(k * {self.plane} + j) * {self.row}"
        bounds = self.random.choice([("1", f"{self.row} - 1"), ("0", self.row), ("1", self.row),
                                     ("3", f"{self.row} - 2")])
        if bounds != ("1", f"{self.row} - 1"):
            body = self.pick(self.update(), self.statement())
            safe = "+ 1" not in body and "- 1" not in body
            bounds = bounds if safe else ("1", f"{self.row} - 1")
        else:
            body = self.statement()
        inner = self.loop(INNER, *bounds, body)
        return self.random.choice([
            inner, inner, inner,
            self.strided(self.statement()),
            "{" + self.loop(INNER, "1", "20", self.update()) + "}\n"
            "{" + self.loop(INNER, "20", f"{self.row} - 1", self.update()) + "}",
            "{" + inner + "}\n{" + self.loop(INNER, "1", f"{self.row} - 1", self.statement()) + "}",
            f"memset(a + {row}, 0, {self.row} * sizeof *a);",
            f"memcpy(a + {row}, other, {self.row} * sizeof *a);\n{inner}",
            f"memmove(a + {row}, b + {row} + 1, ({self.row} - 1) * sizeof *a);",
            f"for (int i = 0; i < 9 * 5; i += 5)\nfor (int m = 0; m < 5; ++m) "
            f"a[{row} + i + m] = 0.5 * a[{row} + i + m] + s;",
            f"for (int i = 0; i < 9; ++i) {{ a[{row} + 5 * i + {self.random.randrange(2)}] = "
            f"0.5 * a[{row} + 5 * i + {self.random.randrange(5)}] + s; "
            f"a[{row} + 5 * i + {2 + self.random.randrange(3)}] += c[{row} + i]; }}",
            f"for (int i = 8; i >= 0; --i) a[{row} + 5 * i + 3] = "
            f"a[{row} + 5 * i + {self.random.randrange(5)}] * 0.5 + s;",
            f"double* p = a + {row};\nconst double* q = b + {row};\n"
            f"for (int n = 0; n < {self.row}; ++n) *p++ = 0.5 * *q++ + s;",
            f"double* p = a + {row} + {self.row};\n"
            f"for (int n = 0; n < {self.row}; ++n) {{ --p; *p = *p * 0.5 - s; }}",
            f"{inner}\nsum += {self.pick('a', 'b')}[{row} + 2];",
            f"{self.pick('a', 'b')}[{row} + 1] = s;\n{inner}",
            f"if (j == 3) opaque(a, 5);\n{inner}",
            f"if (j == 4 && s > 2) return sum;\n{inner}",
            f"s += limits[j % 2];\n{inner}",
            f"bump(j % 4);\n{inner}",
            f"{inner}\nbump(1);\nsum += counts.times[1] < 0;",
            f"{inner}\nstir(j);",
            f"stir(j);\n{inner}",
            f"blend({self.pick('a + 5', 'b', 'other_sum')}, j);\n{inner}",
            f"struct timespec now;\nclock_gettime(CLOCK_MONOTONIC, &now);\n{inner}\n"
            "sum += now.tv_sec > 0;",
            f'char text[32];\nsnprintf(text, sizeof text, "%ld", (long)j);\n{inner}\n'
            "sum += text[0];",
        ])

    def pragma(self, body: str, collapse: bool = False) -> str:
        """In front of a loop over `body`: it is shared out, if it may be."""
        if self.threads < 1 or "break" in body or "return" in body:
            return ""
        clauses = self.pick("", "", "", "", " schedule(static)", " schedule(static, 2)",
                            " schedule(dynamic)", " schedule(guided)")
        if "sum +=" in body:
            clauses += " reduction(+ : sum)"
        if collapse:
            clauses += self.pick("", "", " collapse(2)")
        return f"\n#pragma omp parallel for{clauses}\n"

    def shared(self, name: str, low: str, high: str, body: str, collapse: bool = False) -> str:
        """As loop(), but of a form that may be shared out."""
        if self.threads == BESIDE:
            return (f"const long first_{name} = cut({low}, {high}, part, parts);\n"
                    f"const long end_{name} = cut({low}, {high}, part + 1, parts);\n"
                    + self.loop(name, f"first_{name}", f"end_{name}", body))
        pragma = self.pragma(body, collapse)
        if not pragma:
            return self.loop(name, low, high, body)
        integer = self.pick("int", "long", "long", "unsigned")
        if self.pick("up", "up", "up", "down") == "down":
            integer = self.pick("int", "long")
            loop = f"for ({integer} {name} = {high} - 1; {name} >= {low}; --{name})"
        else:
            loop = f"for ({integer} {name} = {low}; {name} < {high}; ++{name})"
        if "collapse" in pragma:
            return f"{pragma}{loop}\n{body}"
        return f"{pragma}{loop} {{\n{body}\n}}"

    def nest(self) -> str:
        if self.threads > 1 or self.threads == BESIDE:
            return self.nest_without_races()
        depth = self.random.random()
        if depth < 0.12:  # one dimension over all
            self.row = "0"
            body = self.update() if self.random.random() < 0.7 else self.statement()
            high = self.pick("cells - 1", "m1 * m2 * m3 - 1")
            low = "1" if "- 1)" in body or "+ 1)" in body else self.pick("0", "1", "7")
            loop = self.shared(INNER, low, high, body)
            return f"{{ const long k = 0, j = 0;\n{loop} (void)(j + k); }}"
        if depth < 0.2:
            return self.random.choice([
                "memset(a, 0, cells * sizeof *a);",
                "memcpy(a, other, cells * sizeof *a);",
                "memmove(a, b, m1 * m2 * m3 * sizeof *a);",
            ])
        if depth < 0.26:  # rows that overlap
            first, last = self.random.choice([("0", "20"), ("19", "-1")])
            step = "++r" if first == "0" else "--r"
            width = self.random.choice([40, 64])
            return (f"for (int r = {first}; r != {last}; {step})\n"
                    f"for (int i = 0; i < {width}; ++i) "
                    f"a[r * 40 + i] = 0.5 * a[r * 40 + i] + 0.25 * c[i] + s;")
        if self.threads != 0 and self.random.random() < 0.3:
            planes = self.shared("j", "1", f"{self.plane} - 1", self.rows())
            return self.loop("k", "1", "m3 - 1", planes)
        planes = self.loop("j", "1", f"{self.plane} - 1", self.rows())
        guard = self.random.choice(["", "", "", "if (s > 1.75) break;\n"])
        return self.shared("k", "1", "m3 - 1", guard + planes)

    def own_term(self) -> str:
        """Something to read that no other iteration writes."""
        return self.pick(f"a{self.at()}", f"a{self.at()}", f"b{self.at()}", f"c{self.at()}", "s",
                         f"b{self.neighbour()}", f"c{self.neighbour()}", "0.125",
                         "(double)(i % 5)")

    def own_value(self) -> str:
        term = self.own_term
        return self.pick(f"0.5 * {term()} + 0.25 * {term()}", f"0.5 * {term()} - {term()} * s",
                         term(), f"sqrt(fabs({term()}) + 1)", f"small({term()}, {term()})",
                         f"sin({term()})", f"({term()} > 0 ? {term()} : {term()})")

    def own_statement(self) -> str:
        update = f"a{self.at()} = {self.own_value()};"
        return self.random.choice([
            update, update, update, update,
            f"{update}\nf{self.at()} = (float)({self.own_value()});",
            f"f{self.at()} = f{self.at()} * 0.5f + 1;\n{update}",
            f"{update}\nsum += a{self.at()} > 0.5;",
            f"if (b{self.at()} > 0) sum += 2;\n{update}",
            f"if ({self.own_term()} > 0.25) {{ {update} }}",
            f"a{self.at()} += s;\na{self.at()} *= 0.5;",
            f"{update}\nif (a{self.at()} > 0.5) sum += 1;",
            f"points{self.at()} = (struct point){{b{self.at()}, points{self.at()}.x, 3}};",
            f"struct point p = points{self.at()};\np.x = {self.own_value()};\np.y += 0.5;\n"
            f"p.tag++;\npoints{self.at()} = p;",
            f"points{self.at()}.x = {self.own_value()};",
            f"if (b{self.at()} > 0) points{self.at()}.y = {self.own_value()};",
            f"{update}\na{self.at()} += c[index{self.at()}];",
        ])

    def own_rows(self) -> str:
        row = f"(k * {self.plane} + j) * {self.row}"
        inner = self.loop(INNER, "1", f"{self.row} - 1", self.own_statement())
        return self.random.choice([
            inner, inner, inner, inner,
            f"memset(a + {row}, 0, {self.row} * sizeof *a);",
            f"memcpy(a + {row}, other + {row}, {self.row} * sizeof *a);",
            f"if (s > 0.1) {{\n{inner}\n}}",
            f"if (j != 3) {{\n{inner}\n}}",
            f"{inner}\nif (b[{row} + 2] > 0) sum += 1;",
            "{" + self.loop(INNER, "1", "20", self.own_statement()) + "}\n"
            "{" + self.loop(INNER, "20", f"{self.row} - 1", self.own_statement()) + "}",
        ])

    def nest_without_races(self) -> str:
        depth = self.random.random()
        if depth < 0.35:
            self.row = "0"
            low, high = self.random.choice([("1", "cells - 1"), ("7", "cells - 9"),
                                            ("1", "m1 * m2 * m3 - 1"), ("n1", "m1 * m2 * m3 - n1")])
            loop = self.shared(INNER, low, high, self.own_statement())
            return f"{{ const long k = 0, j = 0;\n{loop} (void)(j + k); }}"
        if depth < 0.55:
            planes = self.shared("j", "1", f"{self.plane} - 1", self.own_rows())
            return self.loop("k", "1", "m3 - 1", planes)
        planes = (f"for (long j = 1; j < {self.plane} - 1; ++j) {{\n{self.own_rows()}\n}}")
        return self.shared("k", "1", "m3 - 1", planes, collapse=True)


PROLOGUE = """#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "nests.h"
static __attribute__((noinline)) void opaque(double* at, long offset) {
  at[offset] = at[offset] * 0.5 + 0.125;
}
static inline long cut(long low, long high, long part, long parts) {
  return high < low ? low : low + (high - low) * part / parts;
}
static inline double small(double x, double y) { return 0.5 * x + 0.25 * y; }
#define OBJECT __attribute__((annotate("perdure_ipv")))
static double limits[2] = {0.125, -0.125};
static double other_sum[4];
static struct { long times[4]; double sums[4]; } counts;
static __attribute__((noinline)) void count(long which) { counts.times[which]++; }
static __attribute__((noinline)) void bump(long which) {
  count(which);
  counts.sums[which] += counts.times[which];
}
static __attribute__((noinline)) void blend(double* at, long by) { *at = *at * 0.5 + by; }
"""
PARAMETERS = ("double* {r}a, double* {r}b, double* {r}c, float* f, int* index, "
              "struct point* points, const double* other, long m1, long m2, long m3, double s")
BESIDE_TEXT = """static struct {{
  struct arrays* v;
  const long* size;
  double s, sum;
  int is_there;
}} of_{name};
static double all_of_{name}(struct arrays* v, const long* size, double s, long part, long parts) {{
  return {name}({arguments}, part, parts);
}}
static void* beside_{name}(void* unused) {{
  __atomic_store_n(&of_{name}.is_there, 1, __ATOMIC_SEQ_CST);
  of_{name}.sum = all_of_{name}(of_{name}.v, of_{name}.size, of_{name}.s, 1, 2);
  return unused;
}}
static double shared_{name}(struct arrays* v, const long* size, double s) {{
  pthread_t thread;
  of_{name}.v = v;
  of_{name}.size = size;
  of_{name}.s = s;
  of_{name}.is_there = 0;
  threads_beside++;
  if (pthread_create(&thread, NULL, beside_{name}, NULL) != 0) abort();
  while (!__atomic_load_n(&of_{name}.is_there, __ATOMIC_SEQ_CST)) sched_yield();
  const double sum = all_of_{name}(v, size, s, 0, 2);
  pthread_join(thread, NULL);
  threads_beside--;
  return sum + of_{name}.sum;
}}"""


def program(random: Random, number: int, threads: int = 0) -> str:
    """A program: nests in functions of their own, called with arrays that may be the same."""
    text = [f"static OBJECT double g{number}_0[cells];\nstatic OBJECT double g{number}_1[cells];"]
    text.append(f"static __attribute__((noinline)) void stir_{number}(long i) {{\n"
                f"g{number}_1[i % 40] = g{number}_1[i % 40] * 0.5 + 0.125;\n}}\n"
                f"#define stir stir_{number}")
    calls = []
    arrays = [*(f"v->d[{i}]" for i in range(4)), f"g{number}_0", f"g{number}_1"]
    for nest in range(random.randint(2, 4)):
        name = f"nest_{number}_{nest}"
        chosen = [random.choice(arrays) for _ in range(3)]
        restrict = random.random() < 0.25
        if restrict or threads not in (0, 1):
            chosen = random.sample(arrays, 3)
        other = random.choice([array for array in arrays if array not in chosen])
        planes = "n3"
        extent = "size[2]"
        body = NestGenerator(random, threads).nest()
        free = threads in (0, 1) and "[index" not in body  # its arrays may be parts of one
        if not restrict and free and random.random() < 0.15:
            chosen[random.randrange(3)] += " + n1 * n2"
            planes = "n3 - 1"
            extent = "size[2] - 1"
        if restrict and free and "cells" not in body and random.random() < 0.6:
            # Halves of an array: no aliases, but perhaps one object.
            halves = ["", " + n1 * n2 * (n3 / 2)"]
            random.shuffle(halves)
            chosen[random.choice([1, 2])] = chosen[0] + halves[0]
            chosen[0] += halves[1]
            extent = "size[2] / 2"
        fixed = random.random() < 0.1  # the array's name, not a pointer to it
        if threads not in (0, 1) and f"g{number}_0" in (*chosen, other):
            fixed = False
        kind = random.choice(["static __attribute__((noinline))", "static inline"])
        parameters = PARAMETERS.format(r="restrict " if restrict else "")
        if planes != "n3":
            body = body.replace("cells", "(cells - n1 * n2)")
            body = body.replace("% (cells - n1 * n2)", "% cells")
        bases = f"#define a g{number}_0\n" if fixed and not restrict else ""
        rest = "#undef a\n" if bases else ""
        if bases:
            parameters = parameters.replace("a,", "unused_a,", 1)
        if threads == BESIDE:
            parameters += ", long part, long parts"
        text.append(
            f"{kind} double {name}({parameters}) {{\n{bases}double sum = 0;\n{body}\n{rest}"
            "return sum;\n}"
        )
        arguments = (f"{', '.join(chosen)}, v->f, v->index, v->points, {other}, "
                     f"size[0], size[1], {extent}, s")
        if threads == BESIDE:
            text.append(BESIDE_TEXT.format(name=name, arguments=arguments))
            shared = random.random() < 0.7
            calls.append(f"total += shared_{name}(v, size, s);" if shared else
                         f"total += all_of_{name}(v, size, s, 0, 1);")
            continue
        calls.append(f"total += {name}({arguments});")
    text.append(f"static double run_{number}(struct arrays* v, int epoch) {{\n"
                "static volatile long sizes[3] = {n1, n2, n3};\n"
                "const long size[3] = {sizes[0], sizes[1], sizes[2]};\n"
                "double total = 0, s = 0.25 * epoch - 0.25;")
    for call in calls:
        text.append(random.choice(["", "", "", "if (epoch != 1) ",
                                   "for (int again = 0; again < 2; ++again) "]) + call)
    text.append("return total;\n}\n#undef stir")
    return "\n".join(text)


def unit(random: Random, first: int, count: int, threads: int = 0) -> str:
    """A translation unit with `count` programs, and their table, named by SIDE.

    With `threads`, nests are parallel loops where they may be; BESIDE: shared with a thread.
    """
    parts = [PROLOGUE]
    table = []
    for number in range(first, first + count):
        parts.append(program(random, number, threads))
        table.append(f'{{"program {number}", run_{number}, '
                     f"{{(char*)g{number}_0, (char*)g{number}_1}}}}")
    parts.append("#define NAME_(side, rest) side##rest\n#define NAME(side, rest) NAME_(side, rest)")
    parts.append(f"struct program NAME(SIDE, _programs)[] = {{{','.join(table)}}};")
    parts.append(f"const int NAME(SIDE, _count) = {count};")
    return "\n".join(parts) + "\n"
