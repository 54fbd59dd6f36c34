// One hash: every exact policy, as it comes, gives the weights of `resident`, however many
// micro-batches a step sums.

#include "core/device/cpu/cpu_device.h"
#include "core/plan/policies.h"
#include "core/prove/exact_check.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace mr::test::tst_exact_defaults {

namespace {

using Options = std::map<std::string, std::string>;

} // namespace

class TestExactDefaults : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void weightsAreThoseOfResident_data();
    void weightsAreThoseOfResident();
    void flippedSumsAreOthers();

private:
    std::string hashOf(const std::string& policy, int microBatches, DType compute,
        const Options& options = {}) const;

    QTemporaryDir m_folder;
};

std::string TestExactDefaults::hashOf(
    const std::string& policy, int microBatches, DType compute, const Options& options) const
{
    CpuDeviceOptions device;
    device.memoryBytes = std::size_t{64} << 20;
    device.threads = 2;
    device.mode = CpuDeviceOptions::Mode::Threaded;
    const auto opened = std::move(makeCpuDevice(device)).value();
    TinyRun run;
    run.policy = policy;
    run.options = options;
    run.config.layers = 4; // odd and even blocks on either side of a middle
    run.compute = compute;
    run.accumulate = microBatches;
    run.recompute =
        policy == "streamed" || policy == "ssd-vertical" ? Recompute::Block : Recompute::None;
    run.disk.folders = {m_folder.path().toStdString()};
    auto result = runTiny(*opened, run);
    if (!result.ok())
        qFatal("%s: %s", policy.c_str(), result.status().message().c_str());
    return result.value().weightsHash;
}

void TestExactDefaults::weightsAreThoseOfResident_data()
{
    QTest::addColumn<int>("microBatches");
    QTest::addColumn<bool>("full");
    for (const int microBatches : {1, 2, 3, 5, 8})
        for (const bool full : {false, true})
            QTest::addRow("%s, %d", full ? "fp32" : "bf16", microBatches) << microBatches << full;
}

void TestExactDefaults::weightsAreThoseOfResident()
{
    QFETCH(int, microBatches);
    QFETCH(bool, full);
    const DType compute = full ? DType::F32 : DType::BF16;
    const std::string resident = hashOf("resident", microBatches, compute);

    for (const PolicyInfo& policy : policyTable()) {
        if (!policy.exact)
            continue;
        const std::string hash = hashOf(std::string(policy.name), microBatches, compute);

        QVERIFY2(hash == resident, std::string(policy.name).c_str());
    }
}

void TestExactDefaults::flippedSumsAreOthers()
{
    const Options flipped{{"order", "by-layer-flip"}};
    for (const char* policy : {"resident", "streamed", "ssd-vertical"})
        QVERIFY2(
            hashOf(policy, 3, DType::F32, flipped) != hashOf("resident", 3, DType::F32), policy);
    QCOMPARE(
        hashOf("ssd-vertical", 3, DType::F32, flipped), hashOf("resident", 3, DType::F32, flipped));
}

MR_TEST_WITH_APP(TestExactDefaults)

} // namespace mr::test::tst_exact_defaults

#include "tst_exact_defaults.moc"
