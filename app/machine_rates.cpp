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
    auto resolved = resolveSpec(complete, 0);
    MR_TRY(resolved.status());
    RunSpec spec = std::move(resolved).value();
    auto config = readModelConfig(spec.modelDir.empty() ? spec.scratchConfig : spec.modelDir);
    MR_TRY(config.status());
    auto subject = rateSubject(spec, config.value(), inspectMachine());
    MR_TRY(subject.status());
    const auto path = RateBook::defaultPath();
    RateBook book = RateBook::load(path);
    if (!again && book.isFresh(subject.value().key, unixSecondsNow()))
        return {};
    spec.deviceMemoryBytes = subject.value().deviceBytes;
    spec.threadedDevice = true; // lanes at work together, as in a run that offloads
    auto device = makeDevice(spec);
    MR_TRY(device.status());
    HostProbe load;
    (void)load.read(nowNs()); // what was before does not count
    auto rates = measureRates(*device.value(), subject.value());
    MR_TRY(rates.status());
    if (again) // asked for, so they count whatever else runs
        book.put(subject.value().key, rates.value());
    book.putMeasured(subject.value().key, rates.value(), {unixSecondsNow(), othersPercent(load)});
    return book.save(path);
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
