# mr_net_abi(<target>): defines what app/net/plugin_abi.h needs, as gpu/plugin_abi.cmake does for CUDA.
include(${PROJECT_SOURCE_DIR}/gpu/plugin_abi.cmake)

function(mr_net_abi target)
    mr_interface_hash(interface
        ${PROJECT_SOURCE_DIR}/core/api/millrace/status.h
        ${PROJECT_SOURCE_DIR}/core/hub/http_transport.h
        ${PROJECT_SOURCE_DIR}/app/net/plugin.h)
    target_compile_definitions(${target} PRIVATE
        MR_NET_VERSION="${PROJECT_VERSION}" MR_NET_INTERFACE="${interface}")
endfunction()
