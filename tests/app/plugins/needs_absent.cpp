// A plugin that needs a library which is not where the loader looks.

#include "gpu/plugin.h"

extern "C" int millraceAbsent();

extern "C" const mr::gpu::CudaPlugin* millraceCudaPlugin()
{
    static const mr::gpu::CudaPlugin plugin{"", nullptr, nullptr, nullptr};
    return millraceAbsent() == 0 ? &plugin : nullptr;
}
