# Copies what a program needs into its ../lib, so that the build folder runs on other machines:
#   cmake -DPROGRAM=<file> -DLIBRARIES=<folder> -P bundle.cmake
# Left out is what every such machine has (glibc) or must have itself (cuBLAS, the driver).
file(GET_RUNTIME_DEPENDENCIES
    EXECUTABLES ${PROGRAM}
    RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so" "^libcublas" "^libcuda")
if(missing)
    message(FATAL_ERROR "not found for ${PROGRAM}: ${missing}")
endif()
file(MAKE_DIRECTORY ${LIBRARIES})
foreach(library IN LISTS found)
    cmake_path(GET library FILENAME name)
    file(REAL_PATH ${library} target)
    configure_file(${target} ${LIBRARIES}/${name} COPYONLY)
endforeach()
