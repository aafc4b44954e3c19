# compiler.sh, to be read by others: the C++ compiler, where nobody names one. LLVM's clang takes a third of GCC's time
# for the extension; it uses GCC's C++ library, which has to be there.
clang=/usr/lib/llvm-22/bin/clang++
if [ -z "${CXX:-}" ] && echo '#include <memory>' | "$clang" -x c++ -fsyntax-only - 2>/dev/null; then
  export CXX=$clang
fi
