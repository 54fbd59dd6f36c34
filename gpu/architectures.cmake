# Sets CMAKE_CUDA_ARCHITECTURES, where the caller did not, to those of ours that the found nvcc
# knows: 13.0 starts at 75, 12.8 was the first with 120. Never "native": the build machine may have
# no GPU.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75 80 86 89 90 120)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code
        OUTPUT_VARIABLE known_code RESULT_VARIABLE list_failed ERROR_QUIET)
    if(NOT list_failed)
        string(REGEX MATCHALL "[0-9]+" known_architectures "${known_code}")
        foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
            if(NOT architecture IN_LIST known_architectures)
                message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER} does not know sm_${architecture}; left out")
                list(REMOVE_ITEM CMAKE_CUDA_ARCHITECTURES ${architecture})
            endif()
        endforeach()
    endif()
    # Machine code for each. A build that travels has PTX of the newest only, which a driver can
    # compile for cards to come; one that stays has all, which the tests run.
    if(MR_PORTABLE)
        list(POP_BACK CMAKE_CUDA_ARCHITECTURES newest)
        list(TRANSFORM CMAKE_CUDA_ARCHITECTURES APPEND "-real")
        list(APPEND CMAKE_CUDA_ARCHITECTURES ${newest})
    endif()
endif()
message(STATUS "CUDA: ops are compiled for ${CMAKE_CUDA_ARCHITECTURES}")
