#include "gpu/plugin.h"

#include "gpu/cuda_device.h"
#include "gpu/cuda_facts.h"
#include "gpu/plugin_abi.h"

extern "C" __attribute__((visibility("default"))) const mr::gpu::CudaPlugin* millraceCudaPlugin()
{
    static const mr::gpu::CudaPlugin plugin{mr::gpu::kPluginAbi, &mr::gpu::inspectCuda,
        &mr::gpu::makeCudaDevice, &mr::gpu::baselineBytes};
    return &plugin;
}
