# find_package(Offload): kernels as libraries for C++ (offload_add_library, offload_embed) and as modules of Python
# packages (offload_add_modules). docs/packaging.md describes them.
#
# OFFLOAD_TARGETS, a cache variable or else an environment variable, replaces the targets of every call.
cmake_minimum_required(VERSION 3.20...3.31)

set(OFFLOAD_TARGETS "" CACHE STRING "Targets to build kernels for, in place of those that the project names")

# The interpreter that has offload: the project's, where it looked for one before; that of the environment which these
# files are in (lib/python3.X/site-packages/offload/cmake); or the first that is found.
set(_offload_pythons "${OFFLOAD_PYTHON}")
if(NOT OFFLOAD_PYTHON)
  get_filename_component(_offload_here "${CMAKE_CURRENT_LIST_DIR}/../../../../../bin/python3" ABSOLUTE)
  set(_offload_pythons "")
  foreach(_offload_python IN ITEMS "${Python_EXECUTABLE}" "${Python3_EXECUTABLE}" "${_offload_here}")
    if(EXISTS "${_offload_python}")
      list(APPEND _offload_pythons "${_offload_python}")
    endif()
  endforeach()
  list(APPEND _offload_pythons "find")
endif()
foreach(_offload_each IN LISTS _offload_pythons)
  set(_offload_python "${_offload_each}")
  if(_offload_each STREQUAL "find")
    find_package(Python3 COMPONENTS Interpreter QUIET)
    set(_offload_python "${Python3_EXECUTABLE}")
  endif()
  execute_process(COMMAND "${_offload_python}" -m offload.cmake --includes
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
    OUTPUT_VARIABLE _offload_includes ERROR_VARIABLE _offload_said RESULT_VARIABLE _offload_failed
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT _offload_failed)
    set(OFFLOAD_PYTHON "${_offload_python}")
    break()
  endif()
endforeach()
if(_offload_failed)
  set(Offload_FOUND FALSE)
  set(Offload_NOT_FOUND_MESSAGE
    "the Python that would compile kernels has no offload: '${_offload_python}'. Name one that has: -DOFFLOAD_PYTHON=…\n${_offload_said}")
  return()
endif()

# What the functions use is in the cache: as they are, it is then known in folders beside that which looks for Offload.
set(OFFLOAD_INCLUDE_DIRS "${_offload_includes}" CACHE INTERNAL "")
# Runs in CMAKE_BINARY_DIR, a folder where no other "offload" lies.
set(_OFFLOAD_COMMAND "${OFFLOAD_PYTHON}" -m offload.hooks CACHE INTERNAL "")
set(_OFFLOAD_CMAKE_FOLDER "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "")
include("${CMAKE_CURRENT_LIST_DIR}/OffloadLibrary.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/OffloadModules.cmake")

# The targets to build for, as arguments of a command line; NAMED are those of the call.
function(_offload_target_arguments result)
  if(OFFLOAD_TARGETS)
    set(targets "${OFFLOAD_TARGETS}")
  elseif(NOT "$ENV{OFFLOAD_TARGETS}" STREQUAL "")
    set(targets "$ENV{OFFLOAD_TARGETS}")
  else()
    set(targets "${ARGN}")
  endif()
  set(arguments "")
  foreach(target IN LISTS targets)
    string(STRIP "${target}" target)
    if(target)
      list(APPEND arguments --target "${target}")
    endif()
  endforeach()
  set(${result} "${arguments}" PARENT_SCOPE)
endfunction()

# --arch of a command line: ARCH, what the project names; else, where it is compiled for another machine, that one's.
function(_offload_arch_arguments result arch)
  if(NOT arch AND CMAKE_CROSSCOMPILING)
    string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" arch)
    string(REGEX REPLACE "^arm64$" "aarch64" arch "${arch}")
    string(REGEX REPLACE "^amd64$" "x86_64" arch "${arch}")
  endif()
  set(arguments "")
  if(arch)
    set(arguments --arch "${arch}")
  endif()
  set(${result} "${arguments}" PARENT_SCOPE)
endfunction()

# A folder that the project names as CMake itself writes it: later versions warn of "./package" and "package/".
function(_offload_normalize variable)
  set(folder "${${variable}}")
  if(NOT folder MATCHES "[$]<")
    cmake_path(SET folder NORMALIZE "${folder}")
    string(REGEX REPLACE "(.)/$" "\\1" folder "${folder}")
  endif()
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()

# COMPONENT's arguments of install(); none without a name.
function(_offload_component result component)
  set(${result} "")
  if(component)
    set(${result} COMPONENT "${component}")
  endif()
  set(${result} "${${result}}" PARENT_SCOPE)
endfunction()

# install(KIND files... DESTINATION destination [COMPONENT component]), in which a changed file is always installed
# (OffloadInstall.cmake).
function(_offload_install kind destination component)
  _offload_normalize(destination)
  _offload_component(part "${component}")
  install(CODE "include([[${_OFFLOAD_CMAKE_FOLDER}/OffloadInstall.cmake]])
offload_remove_changed([[${destination}]] [[${ARGN}]])" ${part})
  install(${kind} ${ARGN} DESTINATION "${destination}" ${part})
endfunction()
