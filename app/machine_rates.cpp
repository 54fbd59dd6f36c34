#include "app/machine_rates.h"

#include "app/compose.h"
#include "core/engine/measure_rates.h"
#include "core/model/model_config.h"

#include <millrace/planner.h>

namespace mr::app {

namespace {

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
    if (!again && book.find(subject.value().key))
        return {};
    spec.deviceMemoryBytes = subject.value().deviceBytes;
    spec.threadedDevice = true; // lanes at work together, as in a run that offloads
    auto device = makeDevice(spec);
    MR_TRY(device.status());
    auto rates = measureRates(*device.value(), subject.value());
    MR_TRY(rates.status());
    book.put(subject.value().key, rates.value());
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
