// Runs that choose their interval by the magnitude rule after warm-up.

#include "core/run/engine.h"
#include "core/run/run_rig.h"
#include "core/run/stepped_device.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"

#include <QtTest>

#include <fstream>
#include <map>
#include <memory>
#include <string>

namespace mr::test::tst_engine_interval {

namespace fs = std::filesystem;

namespace {

using Options = std::map<std::string, std::string>;

} // namespace

class TestEngineInterval : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_rig = std::make_unique<RunRig>(); }
    void theIntervalOfTheWarmUpIsThatOfARunThatKnewIt_data();
    void theIntervalOfTheWarmUpIsThatOfARunThatKnewIt();
    void aRunStoppedAroundTheChoiceGoesOnAsIfItHadNot();
    void betweenWindowsARunMayGoOnWithWindowsOfOneStep();
    void anIntervalThatCannotBeSetEndsTheRunWithASentence();

private:
    RunSpec intervalSpec(const std::string& name, const Options& more = {}) const;

    std::unique_ptr<RunRig> m_rig;
};

// Columns change owner after steps 3 (the end of the warm-up) and 9 or so.
RunSpec TestEngineInterval::intervalSpec(const std::string& name, const Options& more) const
{
    RunSpec spec = m_rig->spec(name);
    spec.policy = "zenflow";
    spec.policyOptions = {{"interval", "magnitude"}, {"warmup", "3"}, {"select", "6"},
        {"urgent", "0.25"}, {"tile", "4KiB"}};
    spec.policyOptions.insert(more.begin(), more.end());
    spec.clipNorm = 0.5;
    spec.steps = 14;
    return spec;
}

void TestEngineInterval::theIntervalOfTheWarmUpIsThatOfARunThatKnewIt_data()
{
    QTest::addColumn<bool>("bf16");
    QTest::addColumn<QString>("site");
    QTest::newRow("fp32") << false << "host";
    QTest::newRow("bf16") << true << "host";
    QTest::newRow("bf16, sums on the device") << true << "device";
}

void TestEngineInterval::theIntervalOfTheWarmUpIsThatOfARunThatKnewIt()
{
    QFETCH(bool, bf16);
    QFETCH(QString, site);
    const std::string name = "interval " + std::string(QTest::currentDataTag());
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    RunSpec spec = intervalSpec(name, {{"accumulate-on", site.toStdString()}});
    spec.precision = bf16 ? PrecisionChoice::BF16 : PrecisionChoice::F32;

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const std::string messages = m_rig->messages(run.id);
    const std::string interval = optionOf(*m_rig, run, "interval");
    QCOMPARE(optionOf(*m_rig, run, "energy"), std::string("l1"));
    QVERIFY2(contains(messages, "interval_chosen: The interval is " + interval + " from here on"),
        messages.c_str());
    QVERIFY(contains(messages, " 9 of 9 weights")); // four of each block, and the embedding
    QVERIFY2(std::stoi(interval) > 1 && std::stoi(interval) <= 16, interval.c_str());
    spec.outDir += " known";
    spec.policyOptions["interval"] = interval;
    spec.policyOptions["energy"] = "l1";
    const Outcome known = m_rig->train(spec, *device);
    QVERIFY2(known.ended.ok(), known.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, known.progress.weightsHash);
    const std::vector<StepRow> expected = m_rig->steps(known.id);
    const std::vector<StepRow> steps = m_rig->steps(run.id);
    QCOMPARE(steps.size(), expected.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
        QCOMPARE(steps[s].loss, expected[s].loss);
        QCOMPARE(steps[s].staleness, expected[s].staleness);
    }
    spec.outDir += " of squares";
    spec.policyOptions["energy"] = "l2";
    const Outcome squares = m_rig->train(spec, *device);
    QVERIFY(squares.progress.weightsHash != known.progress.weightsHash);
}

void TestEngineInterval::aRunStoppedAroundTheChoiceGoesOnAsIfItHadNot()
{
    const auto device = smallDevice();
    const Outcome plain = m_rig->train(intervalSpec("interval plain"), *device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    const std::string interval = optionOf(*m_rig, plain, "interval");
    for (const int stop : {2, 3, 4, 5}) {
        RunSpec spec = intervalSpec("interval stop " + std::to_string(stop));
        spec.checkpointEvery = stop;
        const auto first = smallDevice();
        const Outcome stopped = m_rig->train(spec, *first, [stop](Engine& engine, auto step) {
            if (step == stop)
                engine.requestStop();
        });
        QCOMPARE(stopped.progress.step, stop);
        QCOMPARE(
            optionOf(*m_rig, stopped, "interval"), stop <= 3 ? std::string("magnitude") : interval);

        const Outcome resumed = m_rig->resume(spec.outDir, *device);

        QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
        QCOMPARE(resumed.progress.weightsHash, plain.progress.weightsHash);
        QCOMPARE(optionOf(*m_rig, resumed, "interval"), interval);
        QCOMPARE(count(m_rig->messages(resumed.id), "interval_chosen"), 1);
        QCOMPARE(m_rig->steps(resumed.id).size(), std::size_t{14});
    }
}

// Its sums are of another size than those of the run that wrote the checkpoint.
void TestEngineInterval::betweenWindowsARunMayGoOnWithWindowsOfOneStep()
{
    const auto device = smallDevice();
    const auto stopAt = [](std::int64_t last) {
        return [last](Engine& engine, std::int64_t step) {
            if (step == last)
                engine.requestStop();
        };
    };
    RunSpec spec = intervalSpec("one step", {{"energy", "l1"}});
    spec.policyOptions["interval"] = "1";
    spec.precision = PrecisionChoice::BF16;
    const Outcome plain = m_rig->train(spec, *device);
    for (const int stop : {3, 4}) {
        spec = intervalSpec("one step from " + std::to_string(stop), {{"energy", "l1"}});
        spec.policyOptions["interval"] = "2";
        spec.precision = PrecisionChoice::BF16; // gradients are narrower than sums
        spec.checkpointEvery = stop;
        QCOMPARE(m_rig->train(spec, *device, stopAt(stop)).progress.step, stop);
        NewRun record = readRunRecord(spec.outDir).value();
        RunSpec kept = runSpecFromJson(record.configJson).value();
        kept.policyOptions["interval"] = "1";
        record.configJson = toJson(kept);
        QVERIFY(saveRunRecord(spec.outDir, record).ok());

        const Outcome run = m_rig->resume(spec.outDir, *device);

        if (stop == 3) {
            QVERIFY2(run.ended.ok(), run.ended.message().c_str());
            QCOMPARE(run.progress.weightsHash, plain.progress.weightsHash);
        } else { // within a window its sums are part of the run
            QVERIFY(!run.opened.ok());
            QVERIFY2(contains(run.opened.message(), "is missing or of another length"),
                run.opened.message().c_str());
        }
    }
}

void TestEngineInterval::anIntervalThatCannotBeSetEndsTheRunWithASentence()
{
    const RunSpec spec = intervalSpec("interval unsaved");
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    const auto inner = smallDevice();
    SteppedDevice device(*inner);
    device.at = [&](int step) {
        if (step == 3)
            std::ofstream(folder) << "in the way";
    };
    m_rig->onDiskFull = OnDiskFull::Skip;

    const Outcome run = m_rig->train(spec, device);

    m_rig->onDiskFull = OnDiskFull::Stop;
    QVERIFY(!run.ended.ok());
    QCOMPARE(run.ended.kind(), ErrorKind::Io);
    QVERIFY2(contains(run.ended.message(), "interval=magnitude") &&
                 contains(run.ended.message(), "that of step 3 could not be written"),
        run.ended.message().c_str());
    QCOMPARE(optionOf(*m_rig, run, "interval"), std::string("magnitude"));
}

MR_TEST(TestEngineInterval)

} // namespace mr::test::tst_engine_interval

#include "tst_engine_interval.moc"
