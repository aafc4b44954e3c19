# Puts into the extension what it needs of the archives of MLIR, LLVM and lld, and hides it: other copies of LLVM may be
# in the same process.

# The exported targets refer to libMLIR.so and libLLVM.so where LLVM was built with them: take the archives by path, as
# one group, because they refer to each other in circles.
get_property(mlir_libraries GLOBAL PROPERTY MLIR_ALL_LIBS)
set(archives "")
foreach(library MLIRIR LLVMCore)
  if(NOT TARGET ${library})
    set(path "")
  else()
    get_target_property(path ${library} LOCATION)
  endif()
  if(NOT EXISTS "${path}")
    message(FATAL_ERROR "The LLVM in ${LLVM_DIR} has no archive of ${library}: install LLVM with its archives, or link "
                        "with its shared libraries: -DOFFLOAD_STATIC_LLVM=OFF "
                        "(pip install . --config-settings=cmake.define.OFFLOAD_STATIC_LLVM=OFF)")
  endif()
endforeach()
foreach(library lldELF lldCommon ${mlir_libraries} ${LLVM_AVAILABLE_LIBS})
  if(TARGET ${library})
    get_target_property(kind ${library} TYPE)
    get_target_property(path ${library} LOCATION)
    if(kind STREQUAL "STATIC_LIBRARY" AND EXISTS "${path}")
      list(APPEND archives "${path}")
    endif()
  endif()
endforeach()

# lld initializes every target of LLVM, which would take in all of their code generators: those that processors.def does
# not list have nothing to initialize.
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/codegen/processors.def listed REGEX "^TARGET")
set(nothing "// Targets of LLVM that offload has no use for; made by StaticLLVM.cmake.\n")
foreach(target ${LLVM_TARGETS_TO_BUILD})
  if(NOT "TARGET(${target})" IN_LIST listed)
    foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
      string(APPEND nothing "extern \"C\" void LLVMInitialize${target}${part}() {}\n")
    endforeach()
  endif()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/unused_targets.cpp CONTENT "${nothing}" @ONLY)
target_sources(_native PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/unused_targets.cpp)

set(hidden ${CMAKE_CURRENT_SOURCE_DIR}/extension.map)
target_link_libraries(_native PRIVATE
  -Wl,--start-group ${archives} -Wl,--end-group
  $<IF:$<TARGET_EXISTS:zstd::libzstd_static>,zstd::libzstd_static,zstd::libzstd_shared> ZLIB::ZLIB
  ${CMAKE_DL_LIBS} m
  -Wl,--gc-sections -Wl,--as-needed -Wl,-Bsymbolic -Wl,--version-script=${hidden})
set_target_properties(_native PROPERTIES LINK_DEPENDS ${hidden})
