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
endif()

# The kernels are two programs in PTX: compute_80, with asynchronous copies and products of BF16, and
# compute_75 without. The machine code of a card is made of the newest that it takes, and so is that
# of cards to come, by their driver: a portable build has the PTX of compute_80, one that stays on its
# machine that of both, which the tests run.
set(mr_cuda_programs)      # 75 80, those of them that are made
set(mr_cuda_code)          # an option of nvcc for each
set(mr_cuda_architectures) # sm_75 sm_80 ..., for messages
foreach(program IN ITEMS 75 80)
    set(codes)
    foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
        string(REGEX MATCH "^[0-9]+" number ${architecture})
        if((program EQUAL 75 AND number LESS 80) OR (program EQUAL 80 AND number GREATER_EQUAL 80))
            list(APPEND codes sm_${number})
        endif()
    endforeach()
    if(NOT codes)
        continue()
    endif()
    list(APPEND mr_cuda_programs ${program})
    list(APPEND mr_cuda_architectures ${codes})
    if(program EQUAL 80 OR NOT MR_PORTABLE)
        list(PREPEND codes compute_${program})
    endif()
    list(JOIN codes "," codes)
    list(APPEND mr_cuda_code "--generate-code=arch=compute_${program},code=[${codes}]")
endforeach()
message(STATUS "CUDA: ops are compiled for ${mr_cuda_architectures}")
