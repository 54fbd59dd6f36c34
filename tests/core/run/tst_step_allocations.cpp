// A step after warm-up asks nobody for memory: not the device, not the heap.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"
#include "core/run/changed_model.h"
#include "core/run/gemma4_models.h"
#include "core/run/run_rig.h"
#include "support/heap_counter.h"
#include "support/test_room.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mr::test::tst_step_allocations {

namespace {

constexpr int kWarmUp = 3;
constexpr int kMoreSteps = 40;
constexpr int kMeasured = 9;              // steps of a run with files
constexpr std::int64_t kPoolThreads = 6;  // compute, update and stream threads of a tiny run
constexpr std::int64_t kDiskThreads = 10; // and disk threads, with their allocations at start

// Writes down the heap counts whenever it is asked for its memory usage: the engine does so once
// in every step, a tiny run after its first step and after its last. Allocates nothing itself.
class WatchedDevice final : public mr::test::WrappedDevice
{
public:
    explicit WatchedDevice(Device& inner)
        : WrappedDevice(inner)
    {
        m_engine.reserve(kRoom);
        m_all.reserve(kRoom);
    }

    Status onCall(const DeviceCall&) override { return {}; }

    MemoryUsage memoryUsage() const noexcept override
    {
        if (m_engine.size() < kRoom) {
            m_engine.push_back(mr::test::heapCountsOfThisThread());
            m_all.push_back(mr::test::heapCountsOfAllThreads());
        }
        return WrappedDevice::memoryUsage();
    }

    const std::vector<HeapCounts>& engine() const { return m_engine; }
    const std::vector<HeapCounts>& all() const { return m_all; }

private:
    static constexpr std::size_t kRoom = 256;
    mutable std::vector<HeapCounts> m_engine; // by the calling thread
    mutable std::vector<HeapCounts> m_all;
};

std::unique_ptr<Device> cpu(CpuDeviceOptions::Mode mode)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = 2;
    options.mode = mode;
    return std::move(makeCpuDevice(options)).value();
}

// Allocations of all threads, from the end of the first step to the end of the last.
HeapCounts countsOfSteps(TinyRun run, bool threaded, int steps)
{
    run.steps = steps;
    const auto inner =
        cpu(threaded ? CpuDeviceOptions::Mode::Threaded : CpuDeviceOptions::Mode::Inline);
    WatchedDevice device(*inner);
    const auto result = runTiny(device, run);
    if (!result.ok())
        qFatal("%s", result.status().message().c_str());
    const std::vector<HeapCounts>& marks = device.all(); // before, first step, last step, after
    if (marks.size() != 4)
        qFatal("a tiny run asked for the memory usage %d times", static_cast<int>(marks.size()));
    return {marks[2].ours - marks[1].ours, marks[2].oneDnn - marks[1].oneDnn};
}

// Windows of two steps; columns change owner after steps 2, 6, 10, ... After two such rounds every
// kind of step was met, and each was checked twice.
constexpr int kWindowWarmUp = 11;
const std::map<std::string, std::string> kWindows = {
    {"interval", "2"}, {"warmup", "2"}, {"select", "4"}, {"urgent", "0.25"}};

} // namespace

class TestStepAllocations : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void noThreadAllocatesInAStepAfterWarmUp_data();
    void noThreadAllocatesInAStepAfterWarmUp();
    void theEngineThreadAllocatesNothingFromStepToStep_data();
    void theEngineThreadAllocatesNothingFromStepToStep();
};

void TestStepAllocations::noThreadAllocatesInAStepAfterWarmUp_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("order");
    QTest::addColumn<bool>("threaded");
    QTest::addColumn<bool>("bf16");
    for (const char* policy : {"resident", "zero-offload"})
        for (const char* order : {"by-microbatch", "by-layer-flip"})
            for (const bool threaded : {false, true})
                for (const bool bf16 : {false, true})
                    QTest::addRow("%s, %s, %s, %s", policy, order, threaded ? "threaded" : "inline",
                        bf16 ? "bf16" : "fp32")
                        << policy << order << threaded << bf16;
    QTest::newRow("streamed") << "streamed"
                              << "by-layer" << true << true;
    QTest::newRow("streamed, shared") << "streamed shared"
                                      << "by-layer" << true << true;
    for (const char* policy : {"resident", "zero-offload", "streamed"})
        QTest::addRow("%s, not clipped", policy)
            << QString(QLatin1String(policy) + " unclipped") << "by-layer" << true << true;
    for (const char* policy : {"zero-offload compact", "deep-optimizer-states compact", "zenflow",
             "zenflow device", "zenflow compact", "zenflow disk"})
        QTest::addRow("%s", policy) << policy << "by-microbatch" << true << true;
}

void TestStepAllocations::noThreadAllocatesInAStepAfterWarmUp()
{
    QFETCH(QString, policy);
    QFETCH(QString, order);
    QFETCH(bool, threaded);
    QFETCH(bool, bf16);
    TinyRun run;
    const QStringList words = policy.split(QLatin1Char(' '));
    run.policy = words.first().toStdString();
    if (run.policy == "zenflow")
        run.options = kWindows;
    run.options["order"] = order.toStdString();
    if (words.last() == QLatin1String("unclipped"))
        run.clipNorm = 0.0;
    else if (words.last() == QLatin1String("shared"))
        run.options["device-share"] = "0.5";
    else if (words.last() == QLatin1String("disk"))
        run.options["disk-share"] = "1";
    else if (words.size() > 1)
        run.options[words.last() == QLatin1String("device") ? "accumulate-on" : "state"] =
            words.last().toStdString();
    run.compute = bf16 ? DType::BF16 : DType::F32;
    run.recompute = Recompute::Block;
    QTemporaryDir scratch;
    run.disk.folders = {scratch.path().toStdString()};

    const int warmUp = run.policy == "zenflow" ? kWindowWarmUp : kWarmUp;
    const HeapCounts shortRun = countsOfSteps(run, threaded, warmUp);
    const bool isOnDisk = run.options.count("disk-share") > 0;
    // So many that a selection of columns, every fourth step, shows as well.
    const int moreSteps = run.policy == "zenflow" ? 4 * kMoreSteps : kMoreSteps;
    const std::int64_t threads = kPoolThreads + (isOnDisk ? kDiskThreads : 0);
    const HeapCounts longRun = countsOfSteps(run, threaded, warmUp + moreSteps);

    if (longRun.oneDnn > shortRun.oneDnn)
        qInfo("oneDNN itself allocated %llu times a step",
            static_cast<unsigned long long>(
                (longRun.oneDnn - shortRun.oneDnn) / static_cast<std::uint64_t>(moreSteps)));
    // On a busy machine a pool thread may start as late as in the second step, and starting takes
    // up to two allocations a thread. A step that allocates would show in every step.
    const auto more = static_cast<std::int64_t>(longRun.ours - shortRun.ours);
    if (std::abs(more) > 2 * threads)
        qWarning("%lld allocations more in %d steps more", static_cast<long long>(more), moreSteps);
    QVERIFY(std::abs(more) <= 2 * threads);
}

void TestStepAllocations::theEngineThreadAllocatesNothingFromStepToStep_data()
{
    QTest::addColumn<QString>("policy");
    QTest::newRow("resident") << "resident";
    QTest::newRow("resident, packed") << "resident packed";
    QTest::newRow("zero-offload") << "zero-offload";
    QTest::newRow("zenflow") << "zenflow";
    QTest::newRow("deep-optimizer-states") << "deep-optimizer-states";
    QTest::newRow("resident, rows from the model's file") << "resident rows";
}

void TestStepAllocations::theEngineThreadAllocatesNothingFromStepToStep()
{
    QFETCH(QString, policy);
    mr::test::RunRig rig;
    RunSpec spec = rig.spec("run");
    spec.policy = policy.section(QLatin1Char(' '), 0, 0).toStdString();
    spec.pack = policy.endsWith(QLatin1String("packed"));
    if (spec.pack)
        spec.seqLen = 60; // two or three sequences
    const ChangedModel model(inputsConfig());
    if (policy.endsWith(QLatin1String("rows"))) {
        spec.modelDir = model.folder.path();
        spec.method = "lora";
    }
    const bool hasWindows = spec.policy == "zenflow";
    // Every step measures rates. They are looked at after step 8, between two steps.
    const bool measures = spec.policy == "deep-optimizer-states";
    if (hasWindows)
        spec.policyOptions = kWindows;
    if (measures)
        spec.policyOptions = {{"tile", "4KiB"}};
    EngineHooks hooks;
    int looks = 0;
    hooks.onRates = [&](Feedback& measured) {
        ++looks;
        measured = {}; // so that nothing is chosen by them
    };
    const int warmUp = hasWindows || measures ? kWindowWarmUp : kWarmUp;
    spec.steps = warmUp + kMeasured;
    spec.evalEvery = 0;
    const auto inner = cpu(CpuDeviceOptions::Mode::Inline);
    WatchedDevice device(*inner);
    auto engine = Engine::open(spec, device, *rig.store, std::move(hooks));
    QVERIFY2(engine.ok(), engine.status().message().c_str());

    QVERIFY(engine.value()->start().ok());
    const Status ended = engine.value()->wait();

    QVERIFY2(ended.ok(), ended.message().c_str());
    const auto& marks = device.engine();
    QCOMPARE(marks.size(), static_cast<std::size_t>(spec.steps));
    QCOMPARE(looks, measures ? 1 : 0);
    QCOMPARE(marks.back().ours - marks[static_cast<std::size_t>(warmUp)].ours, std::uint64_t{0});
}

MR_TEST(TestStepAllocations)

} // namespace mr::test::tst_step_allocations

#include "tst_step_allocations.moc"
