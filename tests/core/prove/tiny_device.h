// Tiny runs, each on a small CPU device of its own, so that its peaks are those of this run.

#pragma once

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"

#include <QTest>

#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <utility>

namespace mr {

inline Result<TinyResult> runOn(CpuDeviceOptions::Mode mode, const TinyRun& run, int threads = 2)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = threads;
    options.mode = mode;
    auto device = makeCpuDevice(options);
    MR_TRY(device.status());
    return runTiny(*device.value(), run);
}

// Ends the program if the run fails.
inline TinyResult resultOn(CpuDeviceOptions::Mode mode, const TinyRun& run, int threads = 2)
{
    auto result = runOn(mode, run, threads);
    if (!result.ok())
        qFatal("%s: %s", run.policy.c_str(), result.status().message().c_str());
    return std::move(result).value();
}

// `what` has the bits of `expected`, and held and moved what was planned.
inline void compareRuns(const TinyResult& result, const TinyResult& expected, const char* what)
{
    if (result.weightsHash != expected.weightsHash)
        qWarning("differs: %s", what);
    QCOMPARE(result.weightsHash, expected.weightsHash);
    QCOMPARE(result.losses, expected.losses);
    QCOMPARE(result.norms, expected.norms);
    QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
    QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
    QCOMPARE(result.allocationsInSteps, std::size_t{0});
    QCOMPARE(result.h2dBytes, result.plannedH2dBytes);
    QCOMPARE(result.d2hBytes, result.plannedD2hBytes);
    QCOMPARE(result.diskReadBytes, result.plannedDisk.readBytes);
    QCOMPARE(result.diskWrittenBytes, result.plannedDisk.writtenBytes);
}

// Results by a key, so that rows with one reference run it once.
class ReferenceRuns
{
public:
    template <typename... Key>
    const TinyResult& of(const TinyRun& run, const Key&... key)
    {
        std::ostringstream name;
        ((name << key << ' '), ...);
        const auto known = m_results.find(name.str());
        if (known != m_results.end())
            return known->second;
        return m_results.emplace(name.str(), resultOn(CpuDeviceOptions::Mode::Inline, run))
            .first->second;
    }

private:
    std::map<std::string, TinyResult> m_results;
};

} // namespace mr
