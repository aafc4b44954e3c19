# Kernels as a shared library with a header, for C and C++.

# offload_add_library(<name> SOURCES <file>... [TARGETS <target>...] [OPTIONAL_TARGETS <target>...] [LINK <file>...]
#                     [OBJECTS <file>...] [OPT <0-3>] [DEBUG] [ARCH <architecture>] [DESTINATION <folder>]
#                     [INCLUDE_DESTINATION <folder>] [CONFIG_DESTINATION <folder>] [COMPONENT <name>])
#
# Makes lib<name>.so and <name>.h from MLIR files, and the target <name> to link with. Files are relative to the
# current source folder; they may be generated (with their full path), or be generator expressions. Optional targets
# are left out, with a message, where their tools are missing. ARCH is the CPU architecture of the library (x86_64,
# aarch64), by default that which the project is compiled for. With DESTINATION the library is installed there,
# with INCLUDE_DESTINATION its header and what that includes, with CONFIG_DESTINATION what find_package(<name>) of another
# project reads, for which both must be installed; COMPONENT is that of the installation.
function(offload_add_library name)
  set(single OPT ARCH DESTINATION INCLUDE_DESTINATION CONFIG_DESTINATION COMPONENT)
  set(multiple SOURCES TARGETS OPTIONAL_TARGETS LINK OBJECTS)
  cmake_parse_arguments(PARSE_ARGV 1 arg "DEBUG" "${single}" "${multiple}")
  set(known ${multiple} ${single} DEBUG)
  list(JOIN known ", " known)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "offload_add_library(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}; there are ${known}")
  endif()
  # A keyword that is misspelt belongs to the list before it.
  foreach(kind IN LISTS multiple)
    foreach(word IN LISTS arg_${kind})
      if(word MATCHES "^[A-Z][A-Z_]+$" AND NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${word}")
        message(FATAL_ERROR
          "offload_add_library(${name}): ${kind}: ${word} is no file, and no keyword; there are ${known}")
      endif()
    endforeach()
  endforeach()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "offload_add_library(${name}): SOURCES is missing: MLIR files")
  endif()
  if(arg_CONFIG_DESTINATION AND NOT (arg_DESTINATION AND arg_INCLUDE_DESTINATION))
    message(FATAL_ERROR
      "offload_add_library(${name}): CONFIG_DESTINATION is for a library that DESTINATION and INCLUDE_DESTINATION install")
  endif()

  set(library "${CMAKE_CURRENT_BINARY_DIR}/lib${name}.so")
  set(headers "${CMAKE_CURRENT_BINARY_DIR}/${name}-include")
  set(header "${headers}/${name}.h")
  _offload_target_arguments(arguments ${arg_TARGETS})
  _offload_target_arguments(instead) # OFFLOAD_TARGETS takes the place of optional ones, too
  if(instead)
    list(APPEND arguments --instead)
  else()
    foreach(target IN LISTS arg_OPTIONAL_TARGETS)
      list(APPEND arguments --optional-target "${target}")
    endforeach()
  endif()
  set(targets "${arguments}")
  if(DEFINED arg_OPT)
    list(APPEND arguments --opt "${arg_OPT}")
  endif()
  _offload_arch_arguments(arch "${arg_ARCH}")
  list(APPEND arguments ${arch})
  if(arg_DEBUG)
    list(APPEND arguments --debug)
  endif()
  set(files ${arg_SOURCES})
  foreach(kind IN ITEMS LINK OBJECTS)
    foreach(file IN LISTS arg_${kind})
      string(TOLOWER "--${kind}" option)
      # A generator expression may stand for several files.
      list(APPEND arguments "${option}=$<JOIN:${file},$<SEMICOLON>${option}=>")
      list(APPEND files "${file}")
    endforeach()
  endforeach()

  # What targets are linked with: nvvm:sm_90,link=math.bc
  string(REGEX MATCHALL ",link=[^,;]+" linked "${targets}")
  list(TRANSFORM linked REPLACE "^,link=" "")

  # Names are given relative to the source folder: no path of this machine gets into the library.
  add_custom_command(OUTPUT "${library}" "${header}"
    COMMAND ${_OFFLOAD_COMMAND} library "${library}" --header "${header}" --root "${CMAKE_CURRENT_SOURCE_DIR}"
            ${arguments} -- "${arg_SOURCES}"
    DEPENDS ${files} ${linked}
    WORKING_DIRECTORY "${CMAKE_BINARY_DIR}"
    COMMENT "Compiling kernels of ${name}"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${name}_kernels ALL DEPENDS "${library}" "${header}")
  # Makefiles have no rule for the objects of another target: it has to come first.
  foreach(file IN LISTS arg_OBJECTS)
    if(file MATCHES "^\\$<TARGET_OBJECTS:([^<>$]+)>$")
      add_dependencies(${name}_kernels "${CMAKE_MATCH_1}")
    endif()
  endforeach()

  file(MAKE_DIRECTORY "${headers}")
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION "${library}"
    IMPORTED_SONAME "lib${name}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${headers};${OFFLOAD_INCLUDE_DIRS}")
  add_dependencies(${name} ${name}_kernels)

  if(arg_DESTINATION)
    _offload_install(PROGRAMS "${arg_DESTINATION}" "${arg_COMPONENT}" "${library}")
  endif()
  if(arg_INCLUDE_DESTINATION)
    _offload_normalize(arg_INCLUDE_DESTINATION)
    _offload_component(part "${arg_COMPONENT}")
    _offload_install(FILES "${arg_INCLUDE_DESTINATION}" "${arg_COMPONENT}" "${header}")
    foreach(folder IN LISTS OFFLOAD_INCLUDE_DIRS)
      install(DIRECTORY "${folder}/" DESTINATION "${arg_INCLUDE_DESTINATION}" ${part})
    endforeach()
  endif()
  if(arg_CONFIG_DESTINATION)
    _offload_normalize(arg_CONFIG_DESTINATION)
    _offload_installed_path(location "${arg_CONFIG_DESTINATION}" "${arg_DESTINATION}")
    _offload_installed_path(includes "${arg_CONFIG_DESTINATION}" "${arg_INCLUDE_DESTINATION}")
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}Config.cmake" @ONLY CONTENT
      "# Made by offload_add_library: the target @name@, a library of kernels.
if(NOT TARGET @name@)
  add_library(@name@ SHARED IMPORTED)
  set_target_properties(@name@ PROPERTIES
    IMPORTED_LOCATION \"@location@/lib@name@.so\"
    IMPORTED_SONAME \"lib@name@.so\"
    INTERFACE_INCLUDE_DIRECTORIES \"@includes@\")
endif()
")
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}Config.cmake" DESTINATION "${arg_CONFIG_DESTINATION}" ${part})
  endif()
endfunction()

# Where a folder of the installation is, as a file in another one of it writes that: an installation may be moved.
function(_offload_installed_path result from to)
  if(IS_ABSOLUTE "${from}" OR IS_ABSOLUTE "${to}")
    get_filename_component(path "${to}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
  else()
    file(RELATIVE_PATH path "/${from}" "/${to}")
    set(path "\${CMAKE_CURRENT_LIST_DIR}/${path}")
  endif()
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

# offload_embed(<target> <library> DESTINATION <folder> [COMPONENT <name>])
#
# Links an extension module or a program with a library of kernels that lies beside it once both are installed.
function(offload_embed target library)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "DESTINATION;COMPONENT" "")
  if(NOT arg_DESTINATION OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "offload_embed(${target} ${library} DESTINATION <the folder where ${target} is installed>)")
  endif()
  target_link_libraries(${target} PRIVATE ${library})
  set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "$ORIGIN")
  _offload_install(PROGRAMS "${arg_DESTINATION}" "${arg_COMPONENT}" "$<TARGET_FILE:${library}>")
endfunction()
