# compiler.sh, to be read by others: the C++ compiler, where nobody names one. LLVM's own compiles the extension in a
# third of the time of GCC, whose C++ library it needs.
clang=/usr/lib/llvm-22/bin/clang++
if [ -z "${CXX:-}" ] && echo '#include <memory>' | "$clang" -x c++ -fsyntax-only - 2>/dev/null; then
  export CXX=$clang
fi
