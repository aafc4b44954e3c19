"""Names that the C library has of headers and functions, which headers of C++ and namespaces cannot have besides."""

from __future__ import annotations

HEADERS = frozenset({
    "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math", "setjmp",
    "signal", "stdalign", "stdarg", "stdatomic", "stdbit", "stdbool", "stdckdint", "stddef", "stdint", "stdio",
    "stdlib", "stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype",
    # What these, and headers of C++, include besides.
    "alloca", "endian", "features", "libintl", "pthread", "sched", "stdc-predef", "strings", "syslimits", "unistd",
})  # fmt: skip
"""Without their ".h". Headers of C++ have none, and a library's header is not found in their place."""

FUNCTIONS = frozenset({
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bsearch", "calloc", "canonicalize", "cbrt",
    "ceil", "clock", "clone", "copysign", "cos", "cosh", "daylight", "difftime", "div", "erf", "erfc", "exit", "exp",
    "exp10", "exp2", "expm1", "fabs", "fdim", "finite", "floor", "fma", "fmax", "fmin", "fmod", "free", "frexp",
    "gamma", "hypot", "ilogb", "j0", "j1", "jn", "ldexp", "lgamma", "log", "log10", "log1p",
    "log2", "logb", "lrint", "lround", "malloc", "mktime", "modf", "nan", "nearbyint", "nextafter", "pow", "printf",
    "qsort", "rand", "random", "realloc", "remainder", "remove", "remquo", "rename", "rewind", "rint", "round",
    "scalb", "scalbln", "scalbn", "scanf", "select", "significand", "sin", "sincos", "sinh", "sqrt", "srand",
    "srandom", "system", "tan", "tanh", "tgamma", "timezone", "trunc", "y0", "y1", "yn",
})  # fmt: skip
"""Those in C++'s global namespace wherever offload/memref.h is included, as far as kernels may be called like them."""
