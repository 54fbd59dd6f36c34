// A built step whose optimizer state lives on disk, for the tests of such plans.

#pragma once

#include "core/plan/memory_plan.h"
#include "tests/core/plan/plan_bench.h"

#include <QTest>

#include <map>
#include <string>
#include <utility>

namespace mr::test {

// Two blocks; groups end inside a cut.
inline Bench diskBench(const std::map<std::string, std::string>& options = {})
{
    Bench bench;
    bench.shape.boundaryBytes = 4096;
    for (GroupShape& group : bench.shape.groups)
        group.elements = 5000;
    std::map<std::string, std::string> all = {{"tile", "2KiB"}};
    for (const auto& [option, value] : options)
        all[option] = value;
    bench.policy = policyWith("ssd-vertical", all);
    return bench;
}

inline void flush(Bench& bench)
{
    Result<BuiltStep> built = buildFlush(bench.in, bench.shape, bench.budget, {}, bench.policy);
    QVERIFY(built.ok());
    bench.built = std::move(built).value();
}

} // namespace mr::test

#define HOLDS(bench)                                                                               \
    do {                                                                                           \
        const Status status = (bench).check();                                                     \
        QVERIFY2(status.ok(), status.message().c_str());                                           \
    } while (false)
