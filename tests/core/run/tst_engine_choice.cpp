// Runs that choose their device share again, from rates of their own steps.

#include "core/choose/measure_rates.h"
#include "core/choose/rate_cache.h"
#include "core/run/engine.h"
#include "core/run/run_rig.h"
#include "core/run/stepped_device.h"
#include "support/test_room.h"

#include <millrace/library.h>
#include <millrace/planner.h>

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>
#include <functional>
#include <memory>
#include <string>

namespace mr::test::tst_engine_choice {

namespace fs = std::filesystem;

namespace {

constexpr double kSlowLink = 4e6; // bytes per second, each way

std::unique_ptr<Device> linkedDevice(double linkBytesPerSecond)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = 2;
    options.mode = CpuDeviceOptions::Mode::Threaded;
    options.linkBytesPerSecond = linkBytesPerSecond;
    return std::move(makeCpuDevice(options)).value();
}

Feedback ratesOf(double hostUpdate, double deviceUpdate)
{
    Feedback rates;
    rates.hostToDeviceBytesPerSecond = 1e12;
    rates.deviceToHostBytesPerSecond = 1e12;
    rates.hostAdamwElementsPerSecond = hostUpdate;
    rates.deviceAdamwElementsPerSecond = deviceUpdate;
    rates.deviceFlopsPerSecond = 1e15;
    return rates;
}

} // namespace

class TestEngineChoice : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanup() { m_rig->onRates = nullptr; }
    void aWrongShareIsExchangedAndNoBitChanges_data();
    void aWrongShareIsExchangedAndNoBitChanges();
    void aResumedRunKeepsTheShareThatWasChosen();
    void memoryThatLacksAfterAnExchangeIsPlannedAround();
    void aPlanThatCannotBeSavedIsNotExchanged();
    void aShareTheUserGaveIsNotLookedAt();
    void stepsMeasureEveryRate();
    void onASlowLinkWhatStepsMeasureDecides();
    void aRightShareStays();
    void aRunThatWasForetoldWrongCorrectsTheRates();

private:
    static std::string rateKey(const RunSpec& spec);
    RunSpec shareSpec(const std::string& name) const;

    QTemporaryDir m_data;
    std::unique_ptr<RunRig> m_rig;
    std::string m_hash; // every exact run's weights
};

// Key of the spec's entry in the cache of rates.
std::string TestEngineChoice::rateKey(const RunSpec& spec)
{
    auto resolved = resolveSpec(spec, 0);
    if (!resolved.ok())
        qFatal("%s", resolved.status().message().c_str());
    auto subject =
        rateSubject(resolved.value(), readModelConfig(spec.modelDir).value(), inspectMachine());
    return subject.ok() ? subject.value().key : std::string();
}

// The cache says that the device is slow, so runs begin with all updates on the host; but of a slow
// link it says that it is fast and the host slow.
void TestEngineChoice::initTestCase()
{
    qputenv("XDG_DATA_HOME", m_data.path().toUtf8());
    m_rig = std::make_unique<RunRig>();
    RunSpec spec = shareSpec("zero-offload");
    RateCache cache;
    cache.put(rateKey(spec), ratesOf(1e12, 1e2));
    spec.linkBytesPerSecond = kSlowLink;
    cache.put(rateKey(spec), ratesOf(1e2, 1e12));
    QVERIFY(cache.save(RateCache::defaultPath()).ok());
    spec.linkBytesPerSecond = 0.0;

    spec.policy = "zero-offload";
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    const Outcome run = m_rig->train(spec, *device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    m_hash = run.progress.weightsHash;
}

RunSpec TestEngineChoice::shareSpec(const std::string& name) const
{
    RunSpec spec = m_rig->spec(name);
    spec.policy = "deep-optimizer-states";
    spec.policyOptions = {{"tile", "4KiB"}};
    spec.steps = 14;
    return spec;
}

void TestEngineChoice::aWrongShareIsExchangedAndNoBitChanges_data()
{
    QTest::addColumn<QString>("late");
    QTest::addColumn<int>("every");
    QTest::addColumn<int>("step");
    QTest::newRow("after the first steps") << "0" << 0 << 8;
    QTest::newRow("with late parts") << "0.6" << 0 << 8;
    QTest::newRow("at a checkpoint") << "0" << 6 << 6;
}

void TestEngineChoice::aWrongShareIsExchangedAndNoBitChanges()
{
    QFETCH(QString, late);
    QFETCH(int, every);
    QFETCH(int, step);
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    RunSpec spec = shareSpec("share " + std::string(QTest::currentDataTag()));
    spec.policyOptions["late"] = late.toStdString();
    spec.checkpointEvery = every;
    int looks = 0;
    m_rig->onRates = [&](Feedback& measured) {
        ++looks;
        measured = ratesOf(1e2, 1e12);
    };

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{14});
    const std::string messages = m_rig->messages(run.id);
    QCOMPARE(count(messages, "device_share_chosen"), 1);
    QVERIFY2(contains(messages, "device_share_chosen: The device updates 1.000 of the state from "
                                "here on, before 0.000"),
        messages.c_str());
    QVERIFY(std::stod(optionOf(*m_rig, run, "device-share")) > 0.999999);
    QCOMPARE(optionOf(*m_rig, run, "late"), late.toStdString());
    QVERIFY(looks >= 1);
    const std::vector<EventRow> events =
        RunReader::open(m_rig->database).value()->events(run.id, -1).value();
    for (const EventRow& event : events)
        if (event.code == "device_share_chosen") {
            QCOMPARE(event.step, std::int64_t{step});
            QVERIFY(event.level == EventLevel::Info);
        }
    // State that visits the device crosses the link from here on.
    const std::vector<StepRow> steps = m_rig->steps(run.id);
    QVERIFY(steps.back().d2hBytes > 2 * steps.front().d2hBytes);
}

void TestEngineChoice::aResumedRunKeepsTheShareThatWasChosen()
{
    const auto first = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    RunSpec spec = shareSpec("share resumed");
    spec.checkpointEvery = 10;
    m_rig->onRates = [](Feedback& measured) { measured = ratesOf(1e2, 1e12); };
    const Outcome stopped = m_rig->train(spec, *first, [](Engine& engine, std::int64_t step) {
        if (step == 10)
            engine.requestStop();
    });
    QCOMPARE(stopped.progress.step, 10);
    QVERIFY(std::stod(optionOf(*m_rig, stopped, "device-share")) > 0.999999);
    m_rig->onRates = [](Feedback& measured) { measured = ratesOf(1e12, 1e2); };
    const auto second = smallDevice(2, CpuDeviceOptions::Mode::Threaded);

    const Outcome resumed = m_rig->resume(spec.outDir, *second);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QVERIFY(std::stod(optionOf(*m_rig, resumed, "device-share")) > 0.999999);
    QCOMPARE(count(m_rig->messages(resumed.id), "device_share_chosen"), 1);
}

void TestEngineChoice::memoryThatLacksAfterAnExchangeIsPlannedAround()
{
    const auto inner = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    SteppedDevice device(*inner);
    m_rig->onRates = [&](Feedback& measured) {
        measured = ratesOf(1e2, 1e12);
        device.refusals = 4;
    };

    const Outcome run = m_rig->train(shareSpec("share and memory"), device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{14});
    const std::string messages = m_rig->messages(run.id);
    QCOMPARE(count(messages, "memory_replanned"), 1);
    QCOMPARE(count(messages, "device_share_chosen"), 1);
}

// A file lies where the folder of checkpoints belongs, until two steps later.
void TestEngineChoice::aPlanThatCannotBeSavedIsNotExchanged()
{
    const RunSpec spec = shareSpec("share unsaved");
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    const auto inner = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    SteppedDevice device(*inner);
    device.at = [&](int step) {
        if (step == 10)
            fs::remove(folder);
    };
    m_rig->onRates = [&](Feedback& measured) {
        measured = ratesOf(1e2, 1e12);
        std::ofstream(folder) << "in the way";
    };

    const Outcome run = m_rig->train(spec, device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    const std::string messages = m_rig->messages(run.id);
    QCOMPARE(count(messages, "checkpoint_failed"), 1);
    QCOMPARE(count(messages, "device_share_chosen"), 0);
    QCOMPARE(optionOf(*m_rig, run, "device-share"), std::string("0"));
}

void TestEngineChoice::aShareTheUserGaveIsNotLookedAt()
{
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    RunSpec spec = shareSpec("share given");
    spec.policyOptions["device-share"] = "0.5";
    spec.checkpointEvery = 6;
    int looks = 0;
    m_rig->onRates = [&](Feedback&) { ++looks; };

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(looks, 0);
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(optionOf(*m_rig, run, "device-share"), std::string("0.5"));
}

// A link of 50 MB/s. A busy machine may measure a lower rate, never a higher one.
void TestEngineChoice::stepsMeasureEveryRate()
{
    const auto device = linkedDevice(50e6);
    Feedback seen;
    m_rig->onRates = [&](Feedback& measured) {
        seen = measured;
        measured = ratesOf(1e12, 1e2); // as it was planned
    };

    const Outcome run = m_rig->train(shareSpec("measured"), *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    for (const double rate : {seen.hostToDeviceBytesPerSecond, seen.deviceToHostBytesPerSecond})
        QVERIFY2(rate > 0.0 && rate < 51e6, std::to_string(rate).c_str());
    QVERIFY(seen.hostAdamwElementsPerSecond > 0.0 && seen.hostAdamwElementsPerSecond < 1e11);
    QCOMPARE(seen.deviceAdamwElementsPerSecond, 1e2); // nothing visited: as the cache has it
    QVERIFY(seen.block.forward > 0.0 && seen.block.backward > 0.0);
    QVERIFY(seen.head.backward > 0.0 && seen.embedding.forward > 0.0);
}

// Measured rates are not replaced. Visiting state has three times the bytes of new weights and
// takes 60 ms of a step on this link. The host updates in less than 1 ms.
void TestEngineChoice::onASlowLinkWhatStepsMeasureDecides()
{
    const auto device = linkedDevice(kSlowLink);
    RunSpec spec = shareSpec("slow link");
    spec.linkBytesPerSecond = kSlowLink;

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    const std::string messages = m_rig->messages(run.id);
    QVERIFY2(contains(messages, "from here on, before 1.000"), messages.c_str());
    const std::string share = optionOf(*m_rig, run, "device-share");
    QVERIFY2(std::stod(share) < 0.5, share.c_str());
}

void TestEngineChoice::aRightShareStays()
{
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    m_rig->onRates = [](Feedback& measured) { measured = ratesOf(1e12, 1e2); };
    RunSpec spec = shareSpec("share right");
    spec.checkpointEvery = 6;

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(count(m_rig->messages(run.id), "device_share_chosen"), 0);
    QCOMPARE(optionOf(*m_rig, run, "device-share"), std::string("0"));
}

// A machine that is not idle corrects no rate, as its step times include other work.
void TestEngineChoice::aRunThatWasForetoldWrongCorrectsTheRates()
{
    const auto path = RateCache::defaultPath();
    const RateCache before = RateCache::load(path);
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    RunSpec spec = shareSpec("foretold");
    spec.policy = "zero-offload";
    spec.policyOptions.clear();
    const std::string key = rateKey(spec);
    QVERIFY(before.find(key) != nullptr);
    for (const bool isIdle : {false, true}) {
        spec.outDir = m_rig->folder.path(isIdle ? "idle" : "busy");
        m_rig->onTruth = [isIdle](RunTruth& truth) {
            QVERIFY(truth.steps > 0 && truth.stepSeconds > 0.0);
            truth = {3600.0, kLeastTruthSteps, isIdle ? 0.0 : 50.0};
        };

        const Outcome run = m_rig->train(spec, *device);

        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        QCOMPARE(run.progress.weightsHash, m_hash);
        const bool isSaid =
            m_rig->messages(run.id).find("rates_corrected: The forecast was ") != std::string::npos;
        QCOMPARE(isSaid, isIdle);
        const RateCache cache = RateCache::load(path);
        const Feedback* now = cache.find(key);
        QVERIFY(now != nullptr);
        const bool isOther =
            now->hostAdamwElementsPerSecond != before.find(key)->hostAdamwElementsPerSecond;
        QCOMPARE(isOther, isIdle);
    }
    m_rig->onTruth = {};
    QVERIFY(before.save(path).ok());
}

MR_TEST(TestEngineChoice)

} // namespace mr::test::tst_engine_choice

#include "tst_engine_choice.moc"
