# mr_plugin_abi(<target>): defines what gpu/plugin_abi.h needs. Changing one of the headers
# configures again, so that plugin and program never agree by mistake.
set(mr_plugin_headers
    ${PROJECT_SOURCE_DIR}/core/api/millrace/status.h
    ${PROJECT_SOURCE_DIR}/core/device/activity_trace.h
    ${PROJECT_SOURCE_DIR}/core/device/device.h
    ${PROJECT_SOURCE_DIR}/core/device/ops.h
    ${PROJECT_SOURCE_DIR}/core/device/tensor.h
    ${PROJECT_SOURCE_DIR}/gpu/cupti_trace.h
    ${PROJECT_SOURCE_DIR}/gpu/plugin.h)

# mr_interface_hash(<variable> <header>...): 16 digits that differ when a header does.
function(mr_interface_hash variable)
    set(hashes "")
    foreach(header IN LISTS ARGN)
        file(SHA256 ${header} hash)
        string(APPEND hashes ${hash})
    endforeach()
    string(SHA256 interface "${hashes}")
    string(SUBSTRING ${interface} 0 16 interface)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
    set(${variable} ${interface} PARENT_SCOPE)
endfunction()

function(mr_plugin_abi target)
    mr_interface_hash(interface ${mr_plugin_headers})
    target_compile_definitions(${target} PRIVATE
        MR_PLUGIN_VERSION="${PROJECT_VERSION}" MR_PLUGIN_INTERFACE="${interface}")
endfunction()
