# Links the extension with libMLIR.so and libLLVM.so; lld exists as archives only.

# lld's exported targets name the LLVM archives, and two copies of LLVM in one process would not share their
# registries: take the archives of lld by path.
get_target_property(lld_elf lldELF LOCATION)
get_target_property(lld_common lldCommon LOCATION)
target_link_libraries(_native PRIVATE ${lld_elf} ${lld_common} MLIR LLVM)
# LLVM's libraries are outside the loader's own folders on Debian.
set_target_properties(_native PROPERTIES INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
