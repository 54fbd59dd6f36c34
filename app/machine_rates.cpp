#include "app/machine_rates.h"

#include "app/compose.h"
#include "core/base/clock.h"
#include "core/base/host_readings.h"
#include "core/choose/measure_rates.h"
#include "core/model/model_config.h"

#include <millrace/planner.h>

#include <algorithm>

namespace mr::app {

namespace {

// The share of all processors' time that other programs took since the last read(); 0 if not
// known.
double othersPercent(HostProbe& load)
{
    const HostNumbers now = load.read(nowNs());
    return std::max(0.0, now.cpuPercent.value_or(0.0) - now.processPercent.value_or(0.0));
}

Status measure(const RunSpec& complete, bool again)
{
    MR_ASSIGN(RunSpec spec, resolveSpec(complete, 0));
    MR_ASSIGN(
        auto config, readModelConfig(spec.modelDir.empty() ? spec.scratchConfig : spec.modelDir));
    MR_ASSIGN(auto subject, rateSubject(spec, config, inspectMachine()));
    const auto path = RateCache::defaultPath();
    RateCache cache = RateCache::load(path);
    if (!again && cache.isFresh(subject.key, unixSecondsNow()))
        return {};
    spec.deviceMemoryBytes = subject.deviceBytes;
    spec.threadedDevice = true; // lanes at work together, as in a run that offloads
    MR_ASSIGN(auto device, makeDevice(spec));
    HostProbe load;
    (void)load.read(nowNs()); // the load before this does not count
    MR_ASSIGN(auto rates, measureRates(*device, subject));
    if (again) // a person asked, so the rates count even if other programs run
        cache.put(subject.key, rates);
    cache.putMeasured(subject.key, rates, {unixSecondsNow(), othersPercent(load)});
    return cache.save(path);
}

} // namespace

Status measureIfMissing(const RunSpec& complete)
{
    return measure(complete, false);
}

Status measureAgain(const RunSpec& complete)
{
    return measure(complete, true);
}

} // namespace mr::app
