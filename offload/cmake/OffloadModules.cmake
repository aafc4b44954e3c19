# Kernels as modules of a Python package, from the tables of its pyproject.toml.

# offload_add_modules([PYPROJECT <file>] [DESTINATION <folder>] [COMPONENT <name>])
#
# Builds every module of [[tool.offload.kernels]] and installs it into its package below DESTINATION (default: the
# root of the wheel under scikit-build-core, else the install prefix), as part of COMPONENT. A new file that a pattern
# names configures the project again.
function(offload_add_modules)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PYPROJECT;DESTINATION;COMPONENT" "")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "offload_add_modules: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_PYPROJECT)
    set(arg_PYPROJECT "${CMAKE_CURRENT_SOURCE_DIR}/pyproject.toml")
  endif()
  _offload_check_wheel()
  if(NOT arg_DESTINATION)
    _offload_wheel_root(arg_DESTINATION)
  endif()
  get_filename_component(pyproject "${arg_PYPROJECT}" ABSOLUTE)
  if(NOT EXISTS "${pyproject}")
    message(FATAL_ERROR
      "offload_add_modules: there is no file ${pyproject}; where it is elsewhere, name it: "
      "offload_add_modules(PYPROJECT <file>)")
  endif()
  get_filename_component(root "${pyproject}" DIRECTORY)
  set(depended "${pyproject}")
  if(root STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    get_filename_component(depended "${pyproject}" NAME)
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${depended}")

  # A line for each pattern, after a "*"; then for each module: its name, then its files.
  execute_process(COMMAND ${_OFFLOAD_COMMAND} list "${pyproject}" WORKING_DIRECTORY "${CMAKE_BINARY_DIR}"
    OUTPUT_VARIABLE lines ERROR_VARIABLE said RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "${said}")
  endif()
  _offload_target_arguments(arguments)
  _offload_arch_arguments(arch "")
  if(SKBUILD_CORE_VERSION)
    list(APPEND arguments --wheel)
  endif()
  string(REPLACE ";" "\\;" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  string(REGEX REPLACE "([*?[])" "[\\1]" literal "${root}") # as a pattern
  foreach(line IN LISTS lines)
    set(files ${line})
    list(POP_FRONT files module)
    if(module STREQUAL "*")
      # Python's "**" stands for any folders. CMake's GLOB_RECURSE looks below a folder that is named: for files of the
      # last part's form, in more folders than are meant, which configures once too often at worst.
      if(files MATCHES "^(.*/)?[*][*]/(.*/)?([^/]*)$")
        set(last "${CMAKE_MATCH_3}")
        string(REGEX REPLACE "[*][*]/.*$" "" below "${files}")
        file(GLOB_RECURSE found CONFIGURE_DEPENDS "${literal}/${below}${last}")
      else()
        file(GLOB found CONFIGURE_DEPENDS "${literal}/${files}")
      endif()
      continue()
    endif()
    # Relative where that says the same: in a list, what the folder's name has of ";" and brackets would take it apart.
    if(NOT root STREQUAL CMAKE_CURRENT_SOURCE_DIR)
      list(TRANSFORM files PREPEND "${root}/")
    endif()
    # A regular expression that may match nothing is an error before CMake 4.1.
    string(REGEX MATCH "^(.*)\\.[^.]+$" dotted "${module}")
    set(package "${CMAKE_MATCH_1}")
    string(REGEX REPLACE "^.*\\." "" stem "${module}")
    string(REPLACE "." "/" package "${package}")
    set(made "${CMAKE_CURRENT_BINARY_DIR}/offload-modules/${package}")
    _offload_package_folder(folder "${made}" "${root}" "${package}" "${module}")
    set(outputs "${folder}/${stem}.py" "${folder}/${stem}.pyi" "${folder}/${stem}.offload.so")
    # A file that is gone makes none newer.
    set(listed "${made}/${stem}.sources")
    file(CONFIGURE OUTPUT "${listed}" CONTENT "${files}\n" @ONLY)
    add_custom_command(OUTPUT ${outputs}
      COMMAND ${_OFFLOAD_COMMAND} module "${module}" --pyproject "${pyproject}" --output "${folder}" ${arguments} ${arch}
      DEPENDS ${files} "${listed}" "${depended}"
      WORKING_DIRECTORY "${CMAKE_BINARY_DIR}"
      COMMENT "Compiling ${module}"
      VERBATIM)
    set(target "offload_${module}")
    if(NOT target MATCHES "^[A-Za-z0-9_.]+$") # Python's names may have letters that CMake's targets may not
      string(MD5 target "${module}")
      set(target "offload_${target}")
    endif()
    add_custom_target("${target}" ALL DEPENDS ${outputs})
    _offload_install(FILES "${arg_DESTINATION}/${package}" "${arg_COMPONENT}" ${outputs})
  endforeach()
endfunction()

# Refuses what scikit-build-core would make into something that cannot be used.
#
# With wheel.platlib = false the wheel would be named for any machine, and its libraries are for one. The folder may be
# in the cache from an earlier configuration; the prefix is that of this one. In editable installations, versions before
# 1.0 take kernels.offload.so for an extension module "kernels" as well as kernels.py, and import the one listed last.
function(_offload_check_wheel)
  if(SKBUILD_STATE STREQUAL "editable" AND SKBUILD_CORE_VERSION VERSION_LESS "1.0"
     AND NOT CMAKE_BINARY_DIR STREQUAL CMAKE_SOURCE_DIR)
    message(FATAL_ERROR "offload_add_modules: an editable installation by scikit-build-core ${SKBUILD_CORE_VERSION} may "
      "import the library of a module in place of the module: name scikit-build-core>=1.0 in requires of [build-system], "
      "and install that for --no-build-isolation, or install with --config-settings=editable.mode=inplace")
  endif()
  if(SKBUILD AND SKBUILD_PURELIB_DIR)
    string(FIND "${CMAKE_INSTALL_PREFIX}/" "${SKBUILD_PURELIB_DIR}/" place)
    if(place EQUAL 0)
      message(FATAL_ERROR "offload_add_modules: the wheel would be named for any machine (py3-none-any), and what is "
        "compiled is for one: leave wheel.platlib out of [tool.scikit-build]")
    endif()
  endif()
endfunction()

# Where packages are installed, from the install prefix: with wheel.install-dir of scikit-build-core that is a folder of
# the wheel, and what a module is called counts from the wheel's root. The path is relative, since an editable
# installation that is built again has another prefix.
function(_offload_wheel_root result)
  set(root "")
  if(SKBUILD AND SKBUILD_PLATLIB_DIR)
    file(RELATIVE_PATH root "${CMAKE_INSTALL_PREFIX}" "${SKBUILD_PLATLIB_DIR}")
  endif()
  if(NOT root)
    set(root ".")
  endif()
  set(${result} "${root}" PARENT_SCOPE)
endfunction()

# Where a module is made: in the build folder, but for scikit-build-core's editable.mode=inplace, which installs nothing
# and imports what lies among the sources.
function(_offload_package_folder result made root package module)
  set(folder "${made}")
  if(SKBUILD_STATE STREQUAL "editable" AND CMAKE_BINARY_DIR STREQUAL CMAKE_SOURCE_DIR)
    set(places "${root}/src/${package}" "${root}/python/${package}" "${root}/${package}")
    set(folder "")
    foreach(place IN LISTS places)
      if(NOT folder AND IS_DIRECTORY "${place}")
        set(folder "${place}")
      endif()
    endforeach()
    if(NOT folder)
      list(JOIN places ", " places)
      message(FATAL_ERROR "offload_add_modules: editable.mode=inplace takes ${module} from its package's folder among the "
        "sources, and there is none: looked for ${places}; leave editable.mode out")
    endif()
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()
