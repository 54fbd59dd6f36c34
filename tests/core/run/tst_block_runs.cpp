// Runs that train one block after the other: the same bits under every policy and after stops,
// weights outside of the block untouched, what lies on disk, and what is refused.

#include "core/optim/turn_schedule.h"
#include "core/run/changed_model.h"
#include "core/run/damage.h"
#include "core/run/model_tensors.h"
#include "core/run/run_rig.h"
#include "core/save/checkpoint_folder.h"
#include "core/save/model_folder.h"
#include "core/save/turned_groups.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

namespace mr::test::tst_block_runs {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kTurn = 3;
constexpr int kBlocks = 4;

const How kHows[] = {
    {"resident", "resident", {}},
    {"resident by micro-batch", "resident", {{"order", "by-microbatch"}}},
    {"streamed", "streamed", {{"buffers", "1"}, {"tile", "8KiB"}}},
    {"streamed in part", "streamed", {{"weights-on-device", "0.5"}, {"boundary", "device"}}},
    {"from files", "ssd-vertical", {{"weights-on-disk", "1"}, {"tile", "4KiB"}}},
    {"from files in part", "ssd-vertical", {{"weights-on-disk", "0.6"}}},
};

std::set<std::string> filesIn(const fs::path& folder)
{
    std::set<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        names.insert(entry.path().filename().string());
    return names;
}

// "model.layers.3.mlp..." -> 3; another tensor: -1.
int blockOf(const std::string& tensor)
{
    const std::string prefix = "model.layers.";
    return tensor.starts_with(prefix) ? std::stoi(tensor.substr(prefix.size())) : -1;
}

// The block that the checkpoint after `step` holds.
Tensors blockOfCheckpoint(const RunSpec& spec, std::int64_t step, GroupId group)
{
    const ModelConfig config =
        readModelConfig(spec.modelDir.empty() ? spec.scratchConfig : spec.modelDir).value();
    ParamTable table = buildParamTable(config);
    std::erase_if(table.tensors, [&](const NamedTensor& tensor) { return tensor.group != group; });
    const fs::path file = fs::path(spec.outDir) / "checkpoints" / checkpointName(step) / "block" /
                          "block.safetensors";
    return tensorsIn(*std::move(openGroup(file)).value(), table);
}

// Blocks with a tensor that differs, and -1 for one that is in none.
std::set<int> changedBlocks(const Tensors& before, const Tensors& after)
{
    std::set<int> changed;
    for (const auto& [name, values] : before)
        if (after.at(name) != values)
            changed.insert(blockOf(name));
    return changed;
}

} // namespace

class TestBlockRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aStoppedRunGoesOnWithTheBitsOfResident_data();
    void aStoppedRunGoesOnWithTheBitsOfResident();
    void theFirstTurnIsARunOfThatBlock();
    void momentsBeginAnewInEachTurn();
    void onlyTheBlockOfTheTurnChanges();
    void anOlderCheckpointHasItsFilesStill();
    void aDamagedBlockIsNotGoneOnWith_data();
    void aDamagedBlockIsNotGoneOnWith();
    void anotherModelIsRefused();
    void embeddingAndHeadTakeTurnsToo_data();
    void embeddingAndHeadTakeTurnsToo();
    void aModelMadeFromItsConfigTakesTurns();
    void memoryIsThatOfThePlanInEveryTurn();
    void whatHasNoPlaceIsRefused_data();
    void whatHasNoPlaceIsRefused();

private:
    RunSpec spec(const std::string& name) const
    {
        RunSpec spec = m_rig.spec(name);
        spec.modelDir = m_model.folder.path();
        spec.train = TrainOrder::Blocks;
        spec.blockSteps = kTurn;
        spec.steps = 2 * kBlocks * kTurn;
        spec.accumulate = 3;
        spec.diskPaths = {m_rig.folder.path()};
        return spec;
    }
    TurnSchedule schedule() const
    {
        TurnSchedule schedule{{}, kTurn, 1};
        for (int block = 1; block <= kBlocks; ++block)
            schedule.groups.push_back(GroupId{block});
        return schedule;
    }
    std::string modelOf(const RunSpec& spec) const
    {
        return readFile(spec.outDir + "/model/model.safetensors");
    }
    // The model of a run under `resident` that never stopped.
    std::string expected(const RunSpec& spec);

    RunRig m_rig;
    ChangedModel m_model{{{"num_hidden_layers", kBlocks}}};
    std::unique_ptr<Device> m_device = smallDevice();
    std::map<std::pair<PrecisionChoice, bool>, std::string> m_expected;
    std::map<std::string, std::string> m_hashes; // by model
};

std::string TestBlockRuns::expected(const RunSpec& spec)
{
    std::string& model = m_expected[{spec.precision, spec.pack}];
    if (!model.empty())
        return model;
    RunSpec plain = spec;
    plain.policy = "resident";
    plain.policyOptions.clear();
    plain.checkpointEvery = 0;
    plain.outDir = m_rig.folder.path("plain " + std::to_string(m_expected.size()));
    const Outcome run = m_rig.train(plain, *m_device);
    if (!run.ended.ok())
        qFatal("a plain run failed: %s", run.ended.message().c_str());
    m_hashes[modelOf(plain)] = run.progress.weightsHash;
    return model = modelOf(plain);
}

void TestBlockRuns::aStoppedRunGoesOnWithTheBitsOfResident_data()
{
    QTest::addColumn<int>("how");
    QTest::addColumn<bool>("bf16");
    QTest::addColumn<bool>("pack");
    QTest::addColumn<int>("stop"); // the end of a turn, or within one
    for (int how = 0; how < int(std::size(kHows)); ++how)
        for (const bool bf16 : {false, true})
            QTest::addRow("%s %s", kHows[how].name, bf16 ? "bf16" : "fp32")
                << how << bf16 << (how % 2 == 1) << (how % 2 == 0 ? 9 : 8);
}

void TestBlockRuns::aStoppedRunGoesOnWithTheBitsOfResident()
{
    QFETCH(int, how);
    QFETCH(bool, bf16);
    QFETCH(bool, pack);
    QFETCH(int, stop);
    RunSpec spec = this->spec(QTest::currentDataTag());
    spec.precision = bf16 ? PrecisionChoice::BF16 : PrecisionChoice::F32;
    spec.policy = kHows[how].policy;
    spec.policyOptions = kHows[how].options;
    spec.pack = pack;
    spec.checkpointEvery = stop;
    const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    const Outcome stopped = m_rig.train(spec, *threaded, stopAt(stop));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.progress.step, std::int64_t{stop});

    const Outcome resumed = m_rig.resume(spec.outDir, *m_device);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.step, spec.steps);
    QVERIFY(modelOf(spec) == expected(spec));
    QCOMPARE(resumed.progress.weightsHash, m_hashes.at(expected(spec)));
}

void TestBlockRuns::theFirstTurnIsARunOfThatBlock()
{
    const RunSpec turns = spec("first turn");
    RunSpec alone = turns;
    alone.outDir = m_rig.folder.path("one block");
    alone.train = TrainOrder::Together;
    alone.blockSteps = 0;
    alone.trainLayers = std::to_string(schedule().groupOf(0).value - 1);
    std::vector<std::string> hashes;
    for (RunSpec one : {turns, alone}) {
        one.checkpointEvery = kTurn;
        hashes.push_back(m_rig.train(one, *m_device, stopAt(kTurn)).progress.weightsHash);
    }

    QVERIFY(!hashes[0].empty());
    QCOMPARE(hashes[0], hashes[1]);
}

// The first AdamW step moves every weight by the learning rate, whichever turn it is in.
void TestBlockRuns::momentsBeginAnewInEachTurn()
{
    constexpr double kRate = 1e-3;
    RunSpec one = spec("second turn");
    one.schedule = ScheduleKind::Constant;
    one.warmupSteps = 0;
    one.weightDecay = 0.0;
    one.learningRate = kRate;
    one.checkpointEvery = kTurn + 1;
    const Outcome stopped = m_rig.train(one, *m_device, stopAt(kTurn + 1));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.progress.turn, std::int64_t{1});
    QCOMPARE(stopped.progress.updateCount, std::int64_t{1});

    const Tensors before = tensorsOf(one.modelDir);
    int moved = 0;
    int all = 0;
    for (const auto& [name, values] : blockOfCheckpoint(one, kTurn + 1, schedule().groupOf(1)))
        for (std::size_t i = 0; i < values.size(); ++i, ++all) {
            const double step = std::abs(double(values[i]) - before.at(name)[i]);
            moved += std::abs(step - kRate) < 0.02 * kRate ? 1 : 0;
        }
    QVERIFY(all > 1000);
    QVERIFY2(moved > 95 * all / 100, qPrintable(QString::number(moved)));
}

// Frozen weights are read and never written: not in memory, and not on disk.
void TestBlockRuns::onlyTheBlockOfTheTurnChanges()
{
    RunSpec one = spec("whole");
    one.policy = "ssd-vertical";
    one.policyOptions = {{"weights-on-disk", "1"}};
    one.checkpointEvery = 2 * kTurn;
    one.keepCheckpoints = 1;
    const Tensors before = tensorsOf(one.modelDir);
    std::map<std::int64_t, std::set<std::string>> blocks; // files by step
    const Outcome run = m_rig.train(one, *m_device,
        [&](Engine&, std::int64_t step) { blocks[step] = filesIn(one.outDir + "/blocks"); });
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());

    QCOMPARE(changedBlocks(before, tensorsOf(one.outDir + "/model")), (std::set<int>{0, 1, 2, 3}));
    // The last turn's block is that of the last step.
    const Tensors after = tensorsOf(one.outDir + "/model");
    for (const auto& [name, values] :
        blockOfCheckpoint(one, one.steps, schedule().groupOf(2 * kBlocks - 1)))
        QVERIFY(after.at(name) == values);
    for (const StepRow& step : m_rig.steps(run.id)) {
        QCOMPARE(step.diskWriteBytes, std::int64_t{0});
        QVERIFY(step.diskReadBytes > 0);
    }
    // Each turn but the last has left its block; of a block that had two, the older file is gone.
    const TurnSchedule turns = schedule();
    std::map<std::int32_t, std::string> latest;
    for (std::int64_t turn = 0; turn + 1 < 2 * kBlocks; ++turn) {
        const std::int32_t group = turns.groupOf(turn).value;
        latest[group] = QStringLiteral("step-%1-group-%2.safetensors")
                            .arg((turn + 1) * kTurn, 8, 10, QLatin1Char('0'))
                            .arg(group)
                            .toStdString();
    }
    std::set<std::string> names;
    for (const auto& [group, name] : latest)
        names.insert(name);
    QCOMPARE(filesIn(one.outDir + "/blocks"), names);
    QCOMPARE(blocks[2 * kTurn].size(), std::size_t{1});
}

void TestBlockRuns::anOlderCheckpointHasItsFilesStill()
{
    RunSpec one = spec("older");
    one.checkpointEvery = 4;
    one.keepCheckpoints = 3;
    const Outcome stopped = m_rig.train(one, *m_device, stopAt(20));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    fs::remove_all(fs::path(one.outDir) / "checkpoints/step-00000020");
    fs::remove_all(fs::path(one.outDir) / "checkpoints/step-00000016");

    const Outcome resumed = m_rig.resume(one.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QVERIFY(modelOf(one) == expected(one));
}

void TestBlockRuns::aDamagedBlockIsNotGoneOnWith_data()
{
    QTest::addColumn<bool>("isGone");
    QTest::newRow("another byte") << false;
    QTest::newRow("gone") << true;
}

// The newest checkpoint names it; the one before does not, and is gone on from.
void TestBlockRuns::aDamagedBlockIsNotGoneOnWith()
{
    QFETCH(bool, isGone);
    RunSpec one = spec(std::string("damaged ") + QTest::currentDataTag());
    one.checkpointEvery = 4;
    one.keepCheckpoints = 3;
    const Outcome stopped = m_rig.train(one, *m_device, stopAt(8));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.progress.turned.size(), std::size_t{2});
    const auto place = modelPlaceOf(one.outDir, {});
    QVERIFY(!place.ok());
    QVERIFY(contains(place.status().message(), "writes its model at its end"));
    const fs::path file = fs::path(one.outDir) / "blocks" / stopped.progress.turned.back().file;
    if (isGone) {
        fs::remove(file);
    } else {
        std::string bytes = readFile(file.string());
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
        std::ofstream(file, std::ios::binary) << bytes;
    }

    const Outcome resumed = m_rig.resume(one.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QVERIFY(contains(m_rig.messages(resumed.id), file.filename().string()));
    QVERIFY(modelOf(one) == expected(one));
}

void TestBlockRuns::anotherModelIsRefused()
{
    const ChangedModel model{{{"num_hidden_layers", kBlocks}}};
    RunSpec one = spec("another model");
    one.modelDir = model.folder.path();
    one.checkpointEvery = 4;
    (void)m_rig.train(one, *m_device, stopAt(4));
    model.add("model.layers.2.mlp.down_proj.weight", 0.5F);

    const Outcome resumed = m_rig.resume(one.outDir, *m_device);

    QVERIFY(!resumed.opened.ok());
    QVERIFY2(contains(resumed.opened.message(), "is not the model the run began with"),
        resumed.opened.message().c_str());
}

void TestBlockRuns::embeddingAndHeadTakeTurnsToo_data()
{
    QTest::addColumn<bool>("tied");
    QTest::addColumn<QString>("layers");
    QTest::newRow("a head of its own") << false << "embedding,1,3,head";
    QTest::newRow("tied") << true << "embedding,2";
}

void TestBlockRuns::embeddingAndHeadTakeTurnsToo()
{
    QFETCH(bool, tied);
    QFETCH(QString, layers);
    const ChangedModel model{{{"num_hidden_layers", kBlocks}, {"tie_word_embeddings", tied}}};
    std::vector<std::string> models;
    for (const char* policy : {"resident", "streamed", "ssd-vertical"}) {
        RunSpec one = spec(std::string(QTest::currentDataTag()) + " " + policy);
        one.modelDir = model.folder.path();
        one.trainLayers = layers.toStdString();
        one.policy = policy;
        one.checkpointEvery = 7;
        const Outcome stopped = m_rig.train(one, *m_device, stopAt(7));
        QVERIFY2(stopped.opened.ok(), stopped.opened.message().c_str());
        QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
        const Outcome run = m_rig.resume(one.outDir, *m_device);
        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        models.push_back(modelOf(one));
        const std::set<int> changed =
            changedBlocks(tensorsOf(one.modelDir), tensorsOf(one.outDir + "/model"));
        QVERIFY(changed.contains(-1));
        QVERIFY(!changed.contains(0));
    }
    QVERIFY(models[1] == models[0]);
    QVERIFY(models[2] == models[0]);
}

void TestBlockRuns::aModelMadeFromItsConfigTakesTurns()
{
    RunSpec one = spec("from a config");
    one.scratchConfig = m_model.folder.path("config.json");
    one.scratchTokenizer = m_model.folder.path("tokenizer.model");
    one.modelDir.clear();
    RunSpec whole = one;
    whole.outDir = m_rig.folder.path("from a config, whole");
    whole.policy = "streamed";
    one.checkpointEvery = 5;
    (void)m_rig.train(one, *m_device, stopAt(5));
    QVERIFY(m_rig.resume(one.outDir, *m_device).ended.ok());
    QVERIFY(m_rig.train(whole, *m_device).ended.ok());

    QVERIFY(modelOf(one) == modelOf(whole));
}

void TestBlockRuns::memoryIsThatOfThePlanInEveryTurn()
{
    RunSpec one = spec("memory");
    one.policy = "streamed";
    one.precision = PrecisionChoice::BF16;
    const PlanReport plan = planRun(one).value();
    const auto device = smallDevice();
    const Outcome run = m_rig.train(one, *device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());

    for (const StepRow& step : m_rig.steps(run.id)) {
        QCOMPARE(static_cast<std::uint64_t>(step.devicePeakBytes), plan.tiers[0].totalBytes);
        QCOMPARE(static_cast<std::uint64_t>(step.hostPeakBytes), plan.tiers[1].totalBytes);
    }
}

void TestBlockRuns::whatHasNoPlaceIsRefused_data()
{
    QTest::addColumn<QString>("change");
    QTest::addColumn<QString>("words");
    QTest::newRow("adapter") << "lora"
                             << "trains the model's own weights, and method is lora";
    QTest::newRow("light") << "factored"
                           << "keeps AdamW's state of one block";
    QTest::newRow("few steps")
        << "steps"
        << "4 blocks with turns of 3 steps make two rounds in 24 steps, and this run has "
           "20; give it more, shorten the turns (block-steps 2), or train fewer blocks";
    QTest::newRow("one block") << "one"
                               << "nothing to take turns with";
    QTest::newRow("zero-offload") << "zero-offload"
                                  << "does not train blocks in turn; use one of "
                                     "auto, resident, streamed, ssd-vertical";
    QTest::newRow("zenflow") << "zenflow"
                             << "does not train blocks in turn";
    QTest::newRow("no turns") << "together"
                              << "block-steps is an option of train blocks";
}

void TestBlockRuns::whatHasNoPlaceIsRefused()
{
    QFETCH(QString, change);
    QFETCH(QString, words);
    RunSpec one = spec(QTest::currentDataTag());
    if (change == "lora")
        one.method = "lora";
    else if (change == "factored")
        one.optimizer = Optimizer::Factored;
    else if (change == "steps")
        one.steps = 20;
    else if (change == "one")
        one.trainLayers = "2";
    else if (change == "together")
        one.train = TrainOrder::Together;
    else
        one.policy = change.toStdString();

    const Outcome run = m_rig.train(one, *m_device);

    QVERIFY(!run.opened.ok());
    QVERIFY(run.opened.kind() == ErrorKind::InvalidArgument);
    QVERIFY2(contains(run.opened.message(), words.toStdString()), run.opened.message().c_str());
}

MR_TEST(TestBlockRuns)

} // namespace mr::test::tst_block_runs

#include "tst_block_runs.moc"
