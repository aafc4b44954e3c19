# Stops the configuration with one message: what was looked for, what was found, what to install.

set(found "none")
if(MLIR_CONSIDERED_VERSIONS)
  set(found "")
  list(LENGTH MLIR_CONSIDERED_VERSIONS count)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    list(GET MLIR_CONSIDERED_VERSIONS ${i} version)
    list(GET MLIR_CONSIDERED_CONFIGS ${i} config)
    string(APPEND found "\n      MLIR ${version} (${config})")
  endforeach()
elseif(MLIR_FOUND)
  set(found "MLIR ${MLIR_VERSION} (${MLIR_DIR}), but no lld 22 beside it")
endif()

message(FATAL_ERROR "
  offload's compiler half needs MLIR, LLVM and lld, version 22.
    looked for: MLIRConfig.cmake and LLDConfig.cmake of version 22
    looked in:  MLIR_DIR='$ENV{MLIR_DIR}', LLVM_DIR='$ENV{LLVM_DIR}', CMAKE_PREFIX_PATH='${CMAKE_PREFIX_PATH}', /usr/lib/llvm-22
    found:      ${found}
    install:    apt-get install libmlir-22-dev mlir-22-tools llvm-22-dev liblld-22-dev
                (Debian 12 with its security updates, or https://apt.llvm.org), or set MLIR_DIR to the
                lib/cmake/mlir folder of an LLVM 22 installation
    or leave the compiler out: pip install . --config-settings=cmake.define.OFFLOAD_COMPILER=OFF
    (the runtime half: loads and runs what was built elsewhere)
")
