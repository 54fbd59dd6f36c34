// Whole runs on a small model: to the end, stopped, resumed, damaged, refused.

#include "core/run/engine.h"
#include "core/run/run_rig.h"
#include "support/master_buffers.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

namespace mr::test::tst_engine {

namespace fs = std::filesystem;

namespace {

void flipByte(const fs::path& path, std::streamoff at)
{
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char was = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(was ^ 1));
}

std::vector<std::string> checkpointNames(const fs::path& runDir)
{
    std::vector<std::string> names;
    for (const fs::path& path : listCheckpoints(runDir))
        names.push_back(path.filename().string());
    return names;
}

void makeCompact(RunSpec& spec)
{
    spec.precision = PrecisionChoice::BF16;
    spec.policyOptions["state"] = "compact";
}

std::string bytesOf(const fs::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

// The state after which the run is asked to stop.
class TestEngine : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void aRunEndsWithAModelAndItsHistory();
    void computeAndStallsAddUpToTheWallTimeOfEveryStep_data();
    void computeAndStallsAddUpToTheWallTimeOfEveryStep();
    void policiesThreadsAndModesGiveOneHash();
    void blocksTakeTurnsOnThreads();
    void aStoppedRunResumesToTheHashOfTheUninterruptedOne_data();
    void aStoppedRunResumesToTheHashOfTheUninterruptedOne();
    void lossWithCompactStateFallsLikeWithout();
    void compactStateIsSavedAsItIsAndExportedInBf16();
    void compactStateInFp32IsRefused();
    void evaluatingMoreOftenChangesNothing_data();
    void evaluatingMoreOftenChangesNothing();
    void asManyCheckpointsAreKeptAsWereAskedFor();
    void aCheckpointThatIsAskedForIsWrittenAndChangesNothing();
    void checkpointsByTimeComeWhenDueAndChangeNothing_data();
    void checkpointsByTimeComeWhenDueAndChangeNothing();
    void leftoversOfACrashAreRemovedWithTheNextCheckpoint();
    void aDamagedNewestCheckpointFallsBackToTheOneBeforeAndSaysSo_data();
    void aDamagedNewestCheckpointFallsBackToTheOneBeforeAndSaysSo();
    void aRunWithoutAGoodCheckpointSaysWhichFileIsBroken();
    void aManifestOfWrongTypesIsBrokenAndNoCrash();
    void aFinishedRunIsNotResumed();
    void aRunKilledBeforeItsModelWasWrittenIsFinished_data();
    void aRunKilledBeforeItsModelWasWrittenIsFinished();
    void aRunFolderIsNotUsedTwice();
    void aFolderThatIsNoRunIsRefused();
    void otherDataIsRefusedOnResume_data();
    void otherDataIsRefusedOnResume();
    void gradientsThatStayInfiniteStopTheRunAndKeepTheCheckpoints_data();
    void gradientsThatStayInfiniteStopTheRunAndKeepTheCheckpoints();
    void aBudgetThatIsTooSmallNamesTheTierAndWhatWouldHelp();
    void theSavedModelHasTheTensorsOfTheRun();
    void aRunOfOtherHistoryIsEnteredThereOnResume();
    void whatWasLeftOpenIsOpenInTheRecordAlsoAfterAResume();

private:
    std::unique_ptr<RunRig> m_rig;
    std::string m_hash;        // the plain run's weights
    std::string m_compactHash; // the compact run's, in bf16
};

void TestEngine::initTestCase()
{
    m_rig = std::make_unique<RunRig>();
    const auto device = smallDevice();
    const Outcome plain = m_rig->train(m_rig->spec("plain"), *device);
    QVERIFY2(plain.opened.ok(), plain.opened.message().c_str());
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    m_hash = plain.progress.weightsHash;
    QCOMPARE(m_hash.size(), std::size_t{32});
    RunSpec compact = m_rig->spec("compact");
    makeCompact(compact);
    const Outcome other = m_rig->train(compact, *device);
    QVERIFY2(other.ended.ok(), other.ended.message().c_str());
    m_compactHash = other.progress.weightsHash;
    QVERIFY(m_compactHash != m_hash);
}

void TestEngine::aRunEndsWithAModelAndItsHistory()
{
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("history");
    spec.evalEvery = 4;

    const Outcome run = m_rig->train(spec, *device);

    QCOMPARE(run.state, RunState::Finished);
    QCOMPARE(run.progress.step, 12);
    QVERIFY(fs::exists(run.dir / "model" / "model.safetensors"));
    QVERIFY(fs::exists(run.dir / "model" / "tokenizer.model"));
    const std::vector<StepRow> steps = m_rig->steps(run.id);
    QCOMPARE(steps.size(), std::size_t{12});
    QVERIFY(steps.back().loss < steps.front().loss - 0.05);
    const RunRow row = m_rig->row(run.id);
    QCOMPARE(row.status, RunStatus::Done);
    QCOMPARE(row.lastStep, 12);
    QVERIFY(!row.resumable);
    const auto evals =
        RunReader::open(m_rig->database).value()->scalars(run.id, "eval_loss", -1).value();
    QCOMPARE(evals.size(), std::size_t{4}); // before, and after 4, 8 and 12
    QVERIFY(evals.back().value < evals.front().value);
}

void TestEngine::computeAndStallsAddUpToTheWallTimeOfEveryStep_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<bool>("threaded");
    QTest::newRow("resident") << "resident" << false;
    QTest::newRow("zero-offload") << "zero-offload" << false;
    QTest::newRow("zero-offload, threaded") << "zero-offload" << true;
    QTest::newRow("streamed, threaded") << "streamed" << true;
    QTest::newRow("deep-optimizer-states, threaded") << "deep-optimizer-states" << true;
    QTest::newRow("zenflow, threaded") << "zenflow" << true;
}

void TestEngine::computeAndStallsAddUpToTheWallTimeOfEveryStep()
{
    QFETCH(QString, policy);
    QFETCH(bool, threaded);
    const auto device = smallDevice(
        1, threaded ? CpuDeviceOptions::Mode::Threaded : CpuDeviceOptions::Mode::Inline);
    RunSpec spec = m_rig->spec("ledger-" + std::string(QTest::currentDataTag()));
    spec.policy = policy.toStdString();

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const std::vector<StepRow> steps = m_rig->steps(run.id);
    QCOMPARE(steps.size(), std::size_t{12});
    for (const StepRow& step : steps) {
        const auto stalled =
            std::accumulate(step.stallUs.begin(), step.stallUs.end(), std::int64_t{0});
        QCOMPARE(step.computeUs + stalled, step.wallUs);
        QVERIFY(step.computeUs > 0);
        for (const std::int64_t stall : step.stallUs)
            QVERIFY(stall >= 0);
    }
}

void TestEngine::policiesThreadsAndModesGiveOneHash()
{
    const auto threaded = smallDevice(3, CpuDeviceOptions::Mode::Threaded);
    RunSpec spec = m_rig->spec("offload");
    spec.policy = "zero-offload";
    spec.threads = 3;
    spec.policyOptions["order"] = "by-layer";
    spec.recompute = RecomputeChoice::Block;

    const Outcome run = m_rig->train(spec, *threaded);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
}

// Each change of block makes streams and threads anew.
void TestEngine::blocksTakeTurnsOnThreads()
{
    RunSpec spec = m_rig->spec("blocks in turn");
    spec.train = TrainOrder::Blocks;
    spec.blockSteps = 2;
    spec.policy = "streamed";
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.turn, std::int64_t{5});
}

void TestEngine::aStoppedRunResumesToTheHashOfTheUninterruptedOne_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<int>("threads");
    QTest::newRow("resident") << "resident" << 1;
    QTest::newRow("resident, other threads") << "resident" << 3;
    QTest::newRow("resident, cheap recompute") << "resident cheap" << 2;
    QTest::newRow("zero-offload, late, cheap recompute") << "zero-offload late cheap" << 3;
    QTest::newRow("zero-offload, other threads") << "zero-offload" << 2;
    QTest::newRow("zero-offload, late") << "zero-offload late" << 2;
    QTest::newRow("deep-optimizer-states") << "deep-optimizer-states late" << 2;
    QTest::newRow("streamed") << "streamed" << 3;
    QTest::newRow("streamed, late, compact state") << "streamed late compact" << 2;
    QTest::newRow("streamed, late, shared") << "streamed late shared" << 2;
    QTest::newRow("streamed, late, shared, compact state") << "streamed late shared compact" << 3;
    QTest::newRow("resident, compact state") << "resident compact" << 2;
    QTest::newRow("zero-offload, late, compact state") << "zero-offload late compact" << 2;
    QTest::newRow("deep-optimizer-states, late, compact state")
        << "deep-optimizer-states late compact" << 3;
}

void TestEngine::aStoppedRunResumesToTheHashOfTheUninterruptedOne()
{
    QFETCH(QString, policy);
    QFETCH(int, threads);
    RunSpec spec = m_rig->spec("stop-" + std::string(QTest::currentDataTag()));
    const QStringList words = policy.split(QLatin1Char(' '));
    spec.policy = words.first().toStdString();
    if (words.contains(QStringLiteral("late")))
        spec.policyOptions = {{"late", "0.6"}, {"tile", "4KiB"}};
    if (words.contains(QStringLiteral("shared")))
        spec.policyOptions["device-share"] = "0.4";
    const bool compact = words.contains(QStringLiteral("compact"));
    if (compact)
        makeCompact(spec);
    const bool cheap = words.contains(QStringLiteral("cheap"));
    if (cheap)
        spec.recompute = RecomputeChoice::Cheap;
    spec.checkpointEvery = 5;
    const auto first = smallDevice(1);
    const Outcome stopped = m_rig->train(spec, *first, stopAt(5));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.state, RunState::Stopped);
    QCOMPARE(stopped.progress.step, 5);
    QVERIFY(m_rig->row(stopped.id).resumable);
    const auto second = smallDevice(threads, CpuDeviceOptions::Mode::Threaded);

    const Outcome resumed = m_rig->resume(spec.outDir, *second);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.state, RunState::Finished);
    QCOMPARE(resumed.id, stopped.id);
    QCOMPARE(resumed.progress.weightsHash, compact ? m_compactHash : m_hash);
    QCOMPARE(m_rig->steps(resumed.id).size(), std::size_t{12}); // one curve
    QVERIFY(!cheap || readRunSpec(spec.outDir).value().recompute == RecomputeChoice::Cheap);
}

void TestEngine::lossWithCompactStateFallsLikeWithout()
{
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("bf16");
    spec.precision = PrecisionChoice::BF16;
    const Outcome plain = m_rig->train(spec, *device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    spec = m_rig->spec("compact, again");
    makeCompact(spec);

    const Outcome compact = m_rig->train(spec, *device);

    QVERIFY2(compact.ended.ok(), compact.ended.message().c_str());
    QCOMPARE(compact.progress.weightsHash, m_compactHash);
    const double first = m_rig->steps(compact.id).front().loss;
    const double last = m_rig->steps(compact.id).back().loss;
    const double expected = m_rig->steps(plain.id).back().loss;
    QVERIFY(last < first - 0.05);
    QVERIFY2(std::abs(last / expected - 1.0) < 0.02,
        (std::to_string(last) + " against " + std::to_string(expected)).c_str());
}

// 3.25 bytes an element beside the weights; the model of the run is that of its last checkpoint.
void TestEngine::compactStateIsSavedAsItIsAndExportedInBf16()
{
    const fs::path run = m_rig->folder.path("compact");
    const fs::path checkpoint = run / "checkpoints" / "step-00000012";
    const ParamTable table = buildParamTable(readModelConfig(run / "model").value());
    std::int64_t elements = 0;
    for (const ParamGroup& group : table.groups)
        elements += group.elements;

    const auto stateBytes =
        static_cast<std::int64_t>(fs::file_size(checkpoint / "state" / "state.safetensors"));

    QVERIFY(stateBytes >= elements * 13 / 4);
    QVERIFY(stateBytes < elements * 13 / 4 + 4096); // names and shapes
    const std::string exported = bytesOf(run / "model" / "model.safetensors");
    QVERIFY(!exported.empty());
    QVERIFY(exported == bytesOf(checkpoint / "model" / "model.safetensors"));
}

void TestEngine::compactStateInFp32IsRefused()
{
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("compact fp32");
    spec.policyOptions["state"] = "compact";

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY(!run.opened.ok());
    QCOMPARE(run.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY(contains(run.opened.message(), "state=compact needs precision bf16"));
}

void TestEngine::evaluatingMoreOftenChangesNothing_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("late");
    QTest::newRow("resident") << "resident"
                              << "";
    QTest::newRow("streamed, all late") << "streamed"
                                        << "";
    QTest::newRow("streamed, a third late") << "streamed"
                                            << "0.3";
    QTest::newRow("streamed, half visits, half late") << "streamed shared"
                                                      << "0.5";
    QTest::newRow("zero-offload, half late") << "zero-offload"
                                             << "0.5";
    QTest::newRow("deep-optimizer-states, all late") << "deep-optimizer-states"
                                                     << "1";
}

void TestEngine::evaluatingMoreOftenChangesNothing()
{
    QFETCH(QString, policy);
    QFETCH(QString, late);
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("eval-often " + policy.toStdString() + late.toStdString());
    spec.evalEvery = 1;
    spec.policy = policy.section(QLatin1Char(' '), 0, 0).toStdString();
    if (!late.isEmpty())
        spec.policyOptions = {{"late", late.toStdString()}, {"tile", "4KiB"}};
    if (policy.endsWith(QStringLiteral("shared")))
        spec.policyOptions["device-share"] = "0.5";

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
}

void TestEngine::asManyCheckpointsAreKeptAsWereAskedFor()
{
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("keep");
    spec.checkpointEvery = 2;
    spec.keepCheckpoints = 3;

    const Outcome run = m_rig->train(spec, *device);

    QCOMPARE(run.progress.weightsHash, m_hash);
    const std::vector<std::string> expected{"step-00000012", "step-00000010", "step-00000008"};
    QCOMPARE(checkpointNames(run.dir), expected);
    std::size_t complete = 0;
    const auto rows = RunReader::open(m_rig->database).value()->checkpoints(run.id).value();
    for (const CheckpointRow& row : rows)
        complete += row.state == "complete" ? 1 : 0;
    QCOMPARE(complete, std::size_t{3});
}

void TestEngine::aCheckpointThatIsAskedForIsWrittenAndChangesNothing()
{
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("asked");
    spec.checkpointEvery = 0;
    auto engine = Engine::open(spec, *device, *m_rig->store, {});
    QVERIFY2(engine.ok(), engine.status().message().c_str());

    engine.value()->saveNow(); // there is nothing yet: after the first step
    QVERIFY(engine.value()->start().ok());
    QVERIFY(engine.value()->wait().ok());

    QCOMPARE(engine.value()->progress().weightsHash, m_hash);
    const std::vector<std::string> expected{"step-00000012", "step-00000001"};
    QCOMPARE(checkpointNames(m_rig->folder.path("asked")), expected);
}

void TestEngine::checkpointsByTimeComeWhenDueAndChangeNothing_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<int>("minutes");
    QTest::addColumn<int>("evalEvery");
    QTest::addColumn<std::vector<std::string>>("names");
    using Names = std::vector<std::string>;
    const std::string end = "step-00000012";
    QTest::newRow("every third step")
        << "resident" << 15 << 0 << Names{end, "step-00000009", "step-00000006", "step-00000003"};
    QTest::newRow("not where a step was evaluated")
        << "resident" << 15 << 3 << Names{end, "step-00000008", "step-00000004"};
    QTest::newRow("late updates") << "zero-offload" << 25 << 0
                                  << Names{end, "step-00000010", "step-00000005"};
    QTest::newRow("never") << "resident" << 0 << 0 << Names{end};
}

// Each look at the clock is five minutes after the one before.
void TestEngine::checkpointsByTimeComeWhenDueAndChangeNothing()
{
    QFETCH(QString, policy);
    QFETCH(int, minutes);
    QFETCH(int, evalEvery);
    QFETCH(std::vector<std::string>, names);
    constexpr std::int64_t kFiveMinutes = 300'000'000'000;
    RunSpec spec = m_rig->spec("timed " + std::string(QTest::currentDataTag()));
    spec.policy = policy.toStdString();
    if (policy == QLatin1String("zero-offload"))
        spec.policyOptions = {{"late", "0.6"}, {"tile", "4KiB"}};
    spec.checkpointMinutes = minutes;
    spec.keepCheckpoints = 10;
    spec.evalEvery = evalEvery;
    std::int64_t looks = 0;
    m_rig->checkpointClock = [&looks] { return kFiveMinutes * looks++; };
    const auto device = smallDevice();

    const Outcome run = m_rig->train(spec, *device);

    m_rig->checkpointClock = {};
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(checkpointNames(run.dir), names);
    QCOMPARE(run.progress.weightsHash, m_hash);
}

void TestEngine::leftoversOfACrashAreRemovedWithTheNextCheckpoint()
{
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("leftover");
    const fs::path leftover = fs::path(spec.outDir) / "checkpoints" / ".step-00000007";
    fs::create_directories(leftover / "model");

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QVERIFY(!fs::exists(leftover));
}

void TestEngine::aDamagedNewestCheckpointFallsBackToTheOneBeforeAndSaysSo_data()
{
    QTest::addColumn<QString>("file");
    for (const char* file :
        {"state/state.safetensors", "model/model.safetensors", "state/state.json", "manifest.json"})
        QTest::newRow(file) << file;
}

void TestEngine::aDamagedNewestCheckpointFallsBackToTheOneBeforeAndSaysSo()
{
    QFETCH(QString, file);
    RunSpec spec = m_rig->spec("damaged-" + file.section(QLatin1Char('/'), -1).toStdString());
    spec.checkpointEvery = 4;
    const auto device = smallDevice();
    const Outcome stopped = m_rig->train(spec, *device, stopAt(8));
    QCOMPARE(checkpointNames(stopped.dir).front(), std::string("step-00000008"));
    const fs::path broken = stopped.dir / "checkpoints" / "step-00000008" / file.toStdString();
    flipByte(broken, static_cast<std::streamoff>(fs::file_size(broken) / 2));

    const Outcome resumed = m_rig->resume(spec.outDir, *device);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    const std::string messages = m_rig->messages(resumed.id);
    QVERIFY(contains(messages, "checkpoint_broken: The checkpoint step-00000008 is broken"));
    QVERIFY(contains(messages, "step-00000008"));
    QVERIFY(contains(messages, "the one of step 4 was used"));
}

void TestEngine::aRunWithoutAGoodCheckpointSaysWhichFileIsBroken()
{
    RunSpec spec = m_rig->spec("all-damaged");
    spec.checkpointEvery = 4;
    const auto device = smallDevice();
    const Outcome stopped = m_rig->train(spec, *device, stopAt(4));
    const fs::path broken =
        stopped.dir / "checkpoints" / "step-00000004" / "state" / "state.safetensors";
    flipByte(broken, 5000);

    const Outcome resumed = m_rig->resume(spec.outDir, *device);

    QVERIFY(!resumed.opened.ok());
    QCOMPARE(resumed.opened.kind(), ErrorKind::DataCorrupt);
    QVERIFY(contains(resumed.opened.message(), broken.string()));
}

void TestEngine::aManifestOfWrongTypesIsBrokenAndNoCrash()
{
    RunSpec spec = m_rig->spec("hostile");
    spec.checkpointEvery = 4;
    const auto device = smallDevice();
    const Outcome stopped = m_rig->train(spec, *device, stopAt(4));
    const fs::path manifest = stopped.dir / "checkpoints" / "step-00000004" / "manifest.json";
    for (const char* text : {R"({"files":{"state/state.json":{"xxh3":7}}})", R"({"files":[]})",
             "{}", "[]", "", "{", R"({"files":{"nothing":{"xxh3":"0"}}})", R"({"files":{}})"}) {
        std::ofstream(manifest, std::ios::trunc) << text;
        if (std::string(text) == R"({"files":{}})") // proves nothing; its state must still be whole
            std::ofstream(manifest.parent_path() / "state" / "state.json") << R"({"step":"x"})";

        const Outcome resumed = m_rig->resume(spec.outDir, *device);

        QVERIFY2(!resumed.opened.ok(), text);
        QVERIFY(contains(resumed.opened.message(), "step-00000004"));
    }
}

void TestEngine::aFinishedRunIsNotResumed()
{
    const auto device = smallDevice();

    const Outcome resumed = m_rig->resume(m_rig->folder.path("plain"), *device);

    QVERIFY(!resumed.opened.ok());
    QCOMPARE(resumed.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY(contains(resumed.opened.message(), "all of its 12 steps"));
}

void TestEngine::aRunKilledBeforeItsModelWasWrittenIsFinished_data()
{
    QTest::addColumn<QString>("policy");
    QTest::newRow("nothing pending") << "resident";
    QTest::newRow("a window that is applied at the end") << "zenflow";
}

// Its last checkpoint is there.
void TestEngine::aRunKilledBeforeItsModelWasWrittenIsFinished()
{
    QFETCH(QString, policy);
    RunSpec spec = m_rig->spec("killed at the end " + policy.toStdString());
    spec.policy = policy.toStdString();
    if (spec.policy == "zenflow")
        spec.policyOptions = {{"interval", "5"}, {"warmup", "1"}};
    const auto device = smallDevice();
    const Outcome whole = m_rig->train(spec, *device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    const Folder kept;
    const fs::path model = whole.dir / "model";
    fs::rename(model, kept.path("model"));
    QVERIFY(m_rig->store->setStatus(whole.id, RunStatus::Running).ok());

    const Outcome resumed = m_rig->resume(spec.outDir, *device);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.state, RunState::Finished);
    QCOMPARE(resumed.progress.weightsHash, whole.progress.weightsHash);
    const auto bytesOf = [](const std::string& path) {
        QFile file(QString::fromStdString(path));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    };
    const QByteArray weights = bytesOf(model / "model.safetensors");
    QVERIFY(!weights.isEmpty());
    QCOMPARE(weights, bytesOf(kept.path("model/model.safetensors")));
    QCOMPARE(m_rig->steps(whole.id).size(), std::size_t{12});
    QCOMPARE(m_rig->row(whole.id).status, RunStatus::Done);
    QCOMPARE(m_rig->resume(spec.outDir, *device).opened.kind(), ErrorKind::InvalidArgument);
}

void TestEngine::aRunFolderIsNotUsedTwice()
{
    const auto device = smallDevice();

    const Outcome again = m_rig->train(m_rig->spec("plain"), *device);

    QVERIFY(!again.opened.ok());
    QCOMPARE(again.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY(contains(again.opened.message(), "already holds a run"));
    QVERIFY(contains(again.opened.message(), "millrace resume"));
}

void TestEngine::aFolderThatIsNoRunIsRefused()
{
    const auto device = smallDevice();

    const Outcome resumed = m_rig->resume(m_rig->model.path(), *device);

    QVERIFY(!resumed.opened.ok());
    QVERIFY(contains(resumed.opened.message(), "is not a run folder"));
}

void TestEngine::otherDataIsRefusedOnResume_data()
{
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("offset");
    QTest::addColumn<QString>("why");
    QTest::newRow("fewer rows") << 50 << 0 << "put back the data";
    QTest::newRow("as many rows of other text")
        << 60 << 500 << "is not the data the run began with";
}

void TestEngine::otherDataIsRefusedOnResume()
{
    QFETCH(int, rows);
    QFETCH(int, offset);
    QFETCH(QString, why);
    RunSpec spec = m_rig->spec("other-data-" + std::to_string(rows));
    const std::string data = m_rig->folder.write("changing.jsonl", smallPairs(60));
    spec.data = {{data, DataFormat::Auto, {}}};
    spec.checkpointEvery = 4;
    const auto device = smallDevice();
    const Outcome stopped = m_rig->train(spec, *device, stopAt(4));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    m_rig->folder.write("changing.jsonl", smallPairs(rows, offset));

    const Outcome resumed = m_rig->resume(spec.outDir, *device);

    QVERIFY(!resumed.opened.ok());
    QCOMPARE(resumed.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY(contains(resumed.opened.message(), data));
    QVERIFY(contains(resumed.opened.message(), why.toStdString()));
}

void TestEngine::gradientsThatStayInfiniteStopTheRunAndKeepTheCheckpoints_data()
{
    QTest::addColumn<double>("clip");
    QTest::addColumn<QString>("kept");
    // The head is a norm alone. Its gradient is made of normalised numbers: it stays finite.
    QTest::newRow("each group by itself") << 0.0 << "the weights of 3 of 4 groups were left";
    QTest::newRow("all groups as one") << 1e6 << "the weights were left as they are";
}

void TestEngine::gradientsThatStayInfiniteStopTheRunAndKeepTheCheckpoints()
{
    QFETCH(double, clip);
    QFETCH(QString, kept);
    RunSpec spec = m_rig->spec("nan-" + std::to_string(clip));
    spec.learningRate = 10.0; // the most that is allowed; with all that decay it explodes
    spec.schedule = ScheduleKind::Constant;
    spec.warmupSteps = 0;
    spec.clipNorm = clip;
    spec.beta1 = 0.0;
    spec.beta2 = 0.0;
    spec.weightDecay = 10.0; // -99 times the weight, every step
    spec.steps = 200;
    spec.checkpointEvery = 2;
    const auto device = smallDevice();

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY(run.opened.ok());
    QVERIFY(!run.ended.ok());
    QCOMPARE(run.state, RunState::Failed);
    QVERIFY(contains(run.ended.message(), "not finite 5 steps in a row"));
    QVERIFY(contains(run.ended.message(), "smaller learning rate"));
    const RunRow row = m_rig->row(run.id);
    QCOMPARE(row.status, RunStatus::Failed);
    QVERIFY(contains(row.exitReason, "not finite"));
    QVERIFY(!listCheckpoints(run.dir).empty());
    QVERIFY(contains(m_rig->messages(run.id), "not_finite: Step"));
    QVERIFY(contains(m_rig->messages(run.id), kept.toStdString()));
    QCOMPARE(run.progress.badSteps, 5);
    const std::int64_t unchanged = clip > 0.0 ? 5 : 0; // steps that updated nothing
    QCOMPARE(run.progress.updateCount, run.progress.step - unchanged);
    const Outcome resumed = m_rig->resume(spec.outDir, *device); // its files are whole
    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
}

void TestEngine::aBudgetThatIsTooSmallNamesTheTierAndWhatWouldHelp()
{
    const auto device = smallDevice();
    RunSpec spec = m_rig->spec("too-small");
    const auto resident = planRun(spec).value();
    RunSpec offloaded = spec;
    offloaded.policy = "zero-offload";
    spec.deviceMemoryBytes =
        (resident.tiers[0].totalBytes + planRun(offloaded).value().tiers[0].totalBytes) / 2;

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY(!run.opened.ok());
    QCOMPARE(run.opened.kind(), ErrorKind::OutOfMemory);
    QVERIFY(contains(run.opened.message(), "device memory: needs"));
    QVERIFY(contains(run.opened.message(), "short"));
    QVERIFY(contains(run.opened.message(), "policy zero-offload"));
}

void TestEngine::theSavedModelHasTheTensorsOfTheRun()
{
    const fs::path model = fs::path(m_rig->folder.path("plain")) / "model";
    const ModelConfig config = readModelConfig(model).value();
    const ParamTable table = buildParamTable(config);

    auto weights = openWeights(model, config, table);

    QVERIFY2(weights.ok(), weights.status().message().c_str());
    // fp32 files hold the whole master, so the saved weights have the hash of the run.
    QCOMPARE(hashOf(table, *weights.value()), m_hash);
}

void TestEngine::aRunOfOtherHistoryIsEnteredThereOnResume()
{
    RunSpec spec = m_rig->spec("moved");
    spec.checkpointEvery = 4;
    const auto device = smallDevice();
    const Outcome stopped = m_rig->train(spec, *device, stopAt(4));
    QVERIFY(stopped.ended.ok());
    const std::string database = m_rig->folder.path("other.db");
    auto other = RunStore::open(database).value().release();
    const std::unique_ptr<RunStore> owned(other);

    auto engine = Engine::resume(spec.outDir, *device, *other, {});
    QVERIFY2(engine.ok(), engine.status().message().c_str());
    QVERIFY(engine.value()->start().ok());
    const Status ended = engine.value()->wait();

    QVERIFY2(ended.ok(), ended.message().c_str());
    QCOMPARE(engine.value()->progress().weightsHash, m_hash);
    const auto rows = RunReader::open(database).value()->runs().value();
    QCOMPARE(rows.size(), std::size_t{1});
    QCOMPARE(rows[0].status, RunStatus::Done);
}

void TestEngine::whatWasLeftOpenIsOpenInTheRecordAlsoAfterAResume()
{
    RunSpec spec = m_rig->spec("left open");
    spec.threads = 0;
    spec.seqLen = 0;
    spec.warmupSteps = -1;
    spec.deviceMemoryBytes = 0;
    spec.policy = "auto";
    spec.checkpointEvery = 4;
    const auto device = smallDevice();
    const Outcome stopped = m_rig->train(spec, *device, stopAt(4));
    QVERIFY2(stopped.opened.ok(), stopped.opened.message().c_str());
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    // Another history has the run from its folder alone.
    const std::string database = m_rig->folder.path("asked.db");
    const std::unique_ptr<RunStore> other = RunStore::open(database).value();
    auto engine = Engine::resume(spec.outDir, *device, *other, {});
    QVERIFY2(engine.ok(), engine.status().message().c_str());

    const RunRow known = m_rig->row(stopped.id);
    const RunRow resumed = RunReader::open(database).value()->runs().value().at(0);

    for (const RunRow* row : {&known, &resumed}) {
        auto asked = runSpecFromJson(row->askedJson);
        QVERIFY2(asked.ok(), asked.status().message().c_str());
        QCOMPARE(toJson(asked.value()), toJson(spec));
        auto chosen = runSpecFromJson(row->configJson);
        QVERIFY(chosen.ok());
        QVERIFY(chosen.value().threads > 0 && chosen.value().seqLen > 0);
        QVERIFY(chosen.value().deviceMemoryBytes > 0 && chosen.value().policy != "auto");
    }
}

MR_TEST(TestEngine)

} // namespace mr::test::tst_engine

#include "tst_engine.moc"
