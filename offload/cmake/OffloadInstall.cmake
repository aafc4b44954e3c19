# At installation: removes from the DESTINATION those of FILES that it holds in another version.
#
# CMake leaves an installed file as it is where the new one is less than a second younger: an editable package that
# is changed and imported again at once would run its old kernels. It also writes into the file that is there, under
# the feet of a process that has it loaded; removed first, that process keeps its own.
function(offload_remove_changed destination files)
  get_filename_component(folder "${destination}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME)
    set(installed "$ENV{DESTDIR}${folder}/${name}")
    if(EXISTS "${installed}")
      file(SHA256 "${file}" new)
      file(SHA256 "${installed}" old)
      if(NOT old STREQUAL new)
        file(REMOVE "${installed}")
      endif()
    endif()
  endforeach()
endfunction()
