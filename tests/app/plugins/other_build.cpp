// A plugin of another build: nothing behind `abi` may be touched.

#include "gpu/plugin.h"

extern "C" const mr::gpu::CudaPlugin* millraceCudaPlugin()
{
    static const mr::gpu::CudaPlugin plugin{
        "millrace 0.0.1, compiler none", nullptr, nullptr, nullptr};
    return &plugin;
}
