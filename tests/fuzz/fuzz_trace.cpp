#include "core/store/trace_reader.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

namespace mr::fuzz {

void trace(std::string_view bytes)
{
    (void)check(timelineFromTrace(bytes));
}

} // namespace mr::fuzz
