# offload_cross_runtime(<architecture>): builds and installs the runtime for it where clang and its headers are.
include(ExternalProject)

function(offload_cross_runtime architecture)
  find_program(OFFLOAD_CROSS_CLANG NAMES clang-22 clang DOC "The compiler of the runtime for other architectures")
  find_path(OFFLOAD_${architecture}_HEADERS stdio.h PATHS /usr/${architecture}-linux-gnu/include NO_DEFAULT_PATH)
  if(NOT OFFLOAD_CROSS_CLANG OR NOT OFFLOAD_${architecture}_HEADERS)
    message(STATUS "offload: no clang or no headers of a C library for ${architecture}; `--arch ${architecture}` will not work")
    return()
  endif()
  set(archives ${CMAKE_CURRENT_BINARY_DIR}/${architecture})
  set(results ${archives}/libmgpu.a ${archives}/liboffload_runner.a ${archives}/liboffload_builtins.a)
  # No program can be linked without a cross toolchain's start-up files, and none has to be. Without a GCC for the
  # architecture clang would not look for headers there, but at this machine's own.
  ExternalProject_Add(offload_runtime_${architecture}
    SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR}/runtime_c/cross
    BINARY_DIR ${CMAKE_CURRENT_BINARY_DIR}/cross-${architecture}
    CMAKE_ARGS -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=${architecture}
               -DCMAKE_C_COMPILER=${OFFLOAD_CROSS_CLANG} -DCMAKE_C_COMPILER_TARGET=${architecture}-linux-gnu
               "-DCMAKE_C_FLAGS=-nostdlibinc -isystem ${OFFLOAD_${architecture}_HEADERS}"
               -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
               -DCMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER} -DMGPU_WERROR=${MGPU_WERROR}
               -DOFFLOAD_ARCHIVES=${archives}
    BUILD_ALWAYS ON
    BUILD_BYPRODUCTS ${results}
    INSTALL_COMMAND "")
  install(FILES ${results} DESTINATION offload/lib/${architecture})
endfunction()
