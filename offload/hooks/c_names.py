"""Names of the C library: of headers, which no library's header may have, and of functions, which no namespace may."""

from __future__ import annotations

HEADERS = frozenset({
    "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math", "setjmp",
    "signal", "stdalign", "stdarg", "stdatomic", "stdbit", "stdbool", "stdckdint", "stddef", "stdint", "stdio",
    "stdlib", "stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype",
    # What these, and headers of C++, include besides.
    "alloca", "endian", "features", "features-time64", "libintl", "pthread", "sched", "semaphore", "stdc-predef",
    "strings", "syscall", "syslimits", "unistd",
})  # fmt: skip
"""Without their ".h". Headers of C++ have none, and a library's header is not found in their place."""

_OF_REALS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "canonicalize", "cbrt", "ceil", "copysign", "cos",
    "cosh", "drem", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "finite", "floor", "fma",
    "fmax", "fmaximum", "fmin", "fminimum", "fmod", "frexp", "gamma", "hypot", "ilogb", "j0", "j1", "jn", "ldexp",
    "lgamma", "llogb", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf",
    "nan", "nearbyint", "nextafter", "nextdown", "nextup", "pow", "remainder", "remquo", "rint", "round",
    "roundeven", "scalb", "scalbln", "scalbn", "significand", "sin", "sincos", "sinh", "sqrt", "tan", "tanh",
    "tgamma", "trunc", "y0", "y1", "yn",
)  # fmt: skip
"""What has others of its name and an f or an l, for float and long double."""

FUNCTIONS = frozenset({
    "abort", "abs", "atof", "atoi", "bsearch", "calloc", "clock", "clone", "daylight", "difftime", "div", "exit",
    "fadd", "fdiv", "ffma", "fmul", "free", "fsqrt", "fsub", "iszero", "labs", "llabs", "malloc", "mktime",
    "printf", "puts", "qsort", "rand", "random", "realloc", "remove", "rename", "rewind", "scanf", "select",
    "srand", "srandom", "strtod", "system", "timezone",
    *(f"{name}{real}" for name in _OF_REALS for real in ("", "f", "l")),
})  # fmt: skip
"""Those in C++'s global namespace wherever offload/memref.h is included, as far as kernels may be called like them."""
