// Runs that train an adapter beside a model, or some of its layers: stopped and resumed, saved,
// gone on from, and refused where the model is another one.

#include "core/model/frozen_model.h"
#include "core/model/peft_folder.h"
#include "core/run/changed_model.h"
#include "core/run/model_tensors.h"
#include "core/run/run_rig.h"
#include "core/run/saved_loss.h"
#include "support/test_room.h"

#include <millrace/spec_fields.h>

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

namespace mr::test::tst_adapter_runs {

namespace fs = std::filesystem;

namespace {

RunSpec adapterSpec(const RunRig& rig, const std::string& name)
{
    RunSpec spec = rig.spec(name);
    spec.method = "lora";
    spec.rank = 4;
    spec.accumulate = 3;
    spec.learningRate = 3e-2;
    return spec;
}

RunSpec layerSpec(const RunRig& rig, const std::string& name)
{
    RunSpec spec = rig.spec(name);
    spec.trainLayers = "1";
    spec.accumulate = 3;
    return spec;
}

Tensors tensorsOfAdapter(const fs::path& folder)
{
    const PeftConfig config = readPeftConfig(folder).value();
    const ModelConfig model = readModelConfig(config.base).value();
    const ParamTable table = adapterTable(buildParamTable(model), config.settings).value();
    return tensorsIn(*std::move(openPeftWeights(folder, table)).value(), table);
}

} // namespace

class TestAdapterRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aResumedRunHasTheBitsOfOneThatNeverStopped_data();
    void aResumedRunHasTheBitsOfOneThatNeverStopped();
    void theAdapterLiesInItsFolderAndTheModelNowhere();
    void whatIsSavedIsWhatWasTrained();
    void aRunGoesOnFromAnAdapter();
    void settingsBesideAnAdapterAreRefused();
    void theAdapterOfAnotherModelIsRefused();
    void aModelThatWasChangedIsNoticedOnResume();
    void theModelsOwnFileIsReadAndNothingIsWritten();
    void aPreparedModelIsKeptForTheNextRun();
    void layersThatAreNotTrainedKeepTheirBits();
    void layersGoOnWithoutTheModelTheyBeganWith();
    void defaultsAreThoseOfAdapters();
    void theRateOfBIsItsOwn();
    void dropoutActsInTrainingAlone();
    void magnitudesBeginAsTheLengthsOfTheRows();
    void aRunGoesOnFromDora();
    void dropoutComesWithAnAdapterUnlessOneIsGiven();
    void aQuantisedModelTrainsAnAdapterAndNothingElse();
    void badSettingsAreRefused_data();
    void badSettingsAreRefused();

private:
    RunRig m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
};

void TestAdapterRuns::aResumedRunHasTheBitsOfOneThatNeverStopped_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<bool>("layers");
    QTest::addColumn<bool>("bf16");
    QTest::addColumn<double>("clip");
    QTest::addColumn<bool>("pack");
    QTest::addColumn<double>("dropout");
    QTest::addColumn<bool>("dora");
    QTest::addColumn<QString>("more");
    const auto row = [](const char* name, const char* policy, bool layers, bool bf16, double clip,
                         bool pack, double dropout = -1.0, bool dora = false,
                         const char* more = "") {
        QTest::newRow(name) << QString(policy) << layers << bf16 << clip << pack << dropout << dora
                            << QString(more);
    };
    const auto ofModel = [&](const char* name, const char* policy, bool bf16, const char* more) {
        row(name, policy, false, bf16, 0.5, true, -1.0, false, more);
    };
    constexpr const char* kEmbedding = "modules_to_save=embed_tokens,lm_head";
    ofModel("adapter and embedding, bf16, streamed", "streamed", true, kEmbedding);
    ofModel("adapter and embedding, fp32, on the SSD", "ssd-vertical", false, kEmbedding);
    ofModel("adapter and rows, fp32, streamed", "streamed", false, "trainable_tokens=5-9,2");
    ofModel("adapter and rows, bf16", "resident", true, "trainable_tokens=5-9,2");
    row("adapter, fp32", "resident", false, false, 1.0, false);
    row("adapter, bf16, packed", "resident", false, true, 0.5, true);
    row("adapter, bf16, no clip", "resident", false, true, 0.0, false);
    row("adapter, fp32, streamed, packed", "streamed", false, false, 0.5, true);
    row("adapter, bf16, streamed", "streamed", false, true, 0.0, false);
    row("adapter with dropout, fp32, streamed", "streamed", false, false, 0.5, false, 0.2);
    row("adapter with dropout, bf16, packed", "resident", false, true, 0.0, true, 0.5);
    row("DoRA, fp32, streamed", "streamed", false, false, 0.5, false, -1.0, true);
    row("DoRA, bf16, packed", "resident", false, true, 0.0, true, -1.0, true);
    row("DoRA with dropout, bf16, streamed", "streamed", false, true, 0.5, false, 0.2, true);
    row("adapter, fp32, from the model's file", "ssd-vertical", false, false, 0.5, true);
    row("adapter with dropout, bf16, from a file", "ssd-vertical", false, true, 0.0, false, 0.2);
    row("DoRA, bf16, from a file", "ssd-vertical", false, true, 0.5, false, -1.0, true);
    row("layer, fp32, packed", "resident", true, false, 0.0, true);
    row("layer, bf16", "resident", true, true, 0.5, false);
    row("layer, bf16, streamed", "streamed", true, true, 0.5, false);
    row("layer, fp32, on the SSD", "ssd-vertical", true, false, 1.0, false);
}

void TestAdapterRuns::aResumedRunHasTheBitsOfOneThatNeverStopped()
{
    QFETCH(QString, policy);
    QFETCH(bool, layers);
    QFETCH(bool, bf16);
    QFETCH(double, clip);
    QFETCH(bool, pack);
    QFETCH(double, dropout);
    QFETCH(bool, dora);
    QFETCH(QString, more);
    const std::string tag = QTest::currentDataTag();
    RunSpec spec = layers ? layerSpec(m_rig, tag) : adapterSpec(m_rig, tag);
    spec.precision = bf16 ? PrecisionChoice::BF16 : PrecisionChoice::F32;
    spec.clipNorm = clip;
    spec.pack = pack;
    spec.dropout = dropout;
    spec.dora = dora;
    if (!more.isEmpty())
        QVERIFY(readOption(*findSpecField(more.section('=', 0, 0).toStdString()),
            more.section('=', 1).toStdString(), spec)
                    .ok());
    spec.evalData = spec.data;
    const Outcome plain = m_rig.train(spec, *m_device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    spec.policy = policy.toStdString();
    // Looking changes nothing, also where it puts other weights into the one slot there is.
    spec.evalEvery = 1;
    if (policy == QLatin1String("streamed"))
        spec.policyOptions["buffers"] = "1";
    if (policy == QLatin1String("ssd-vertical") && !layers)
        spec.policyOptions = {{"weights-on-disk", "1"}, {"buffers", "1"}};
    spec.diskPaths = {m_rig.folder.path()};
    spec.outDir += " stopped";
    spec.checkpointEvery = 5;
    const Outcome stopped = m_rig.train(spec, *m_device, stopAt(5));
    QCOMPARE(stopped.progress.step, 5);

    const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    const Outcome resumed = m_rig.resume(spec.outDir, *threaded);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, plain.progress.weightsHash);
    QVERIFY(resumed.progress.weightsHash != stopped.progress.weightsHash);
    const std::string file =
        layers ? "model/model.safetensors" : "adapter/adapter_model.safetensors";
    QVERIFY(readFile((plain.dir / file).string()) == readFile((resumed.dir / file).string()));
}

void TestAdapterRuns::theAdapterLiesInItsFolderAndTheModelNowhere()
{
    const RunSpec spec = adapterSpec(m_rig, "saved");
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());

    for (const fs::path& folder : {run.dir, run.dir / "checkpoints" / "step-00000012"}) {
        QVERIFY(!fs::exists(folder / "model"));
        const PeftConfig config = readPeftConfig(folder / "adapter").value();
        QCOMPARE(config.settings.rank, 4);
        QCOMPARE(config.settings.alpha, 4.0);
        QCOMPARE(config.base, m_rig.model.path());
        QCOMPARE(config.baseHash, run.progress.baseHash);
        QVERIFY(!config.baseHash.empty());
    }
    const ModelConfig config = readModelConfig(m_rig.model.path()).value();
    const ParamTable table = buildParamTable(config);
    QCOMPARE(weightsHash(table, *openWeights(m_rig.model.path(), config, table).value()).value(),
        run.progress.baseHash);
}

void TestAdapterRuns::whatIsSavedIsWhatWasTrained()
{
    RunSpec spec = adapterSpec(m_rig, "evaluated");
    spec.evalData = spec.data;
    spec.evalEvery = 12;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());

    const double saved = lossOf(m_rig, m_rig.model.path(), (run.dir / "adapter").string());

    QVERIFY(std::abs(saved - run.progress.evalLoss) < 1e-6);
    QVERIFY(saved < lossOf(m_rig, m_rig.model.path()) - 0.1);
}

void TestAdapterRuns::aRunGoesOnFromAnAdapter()
{
    RunSpec first = adapterSpec(m_rig, "first");
    first.rankStabilised = true;
    first.targets = "q_proj,down_proj";
    first.alphaPattern = {{"down_proj", "6.5"}};
    first.trainLayers = "1";
    first.trainedTokens = "30-32,7";
    const Outcome before = m_rig.train(first, *m_device);
    QVERIFY2(before.ended.ok(), before.ended.message().c_str());
    RunSpec spec = m_rig.spec("second");
    spec.method = "lora";
    spec.adapterDir = (before.dir / "adapter").string();
    spec.evalData = spec.data;
    spec.evalEvery = 1;
    spec.steps = 1;
    spec.learningRate = 1e-30;

    const Outcome run = m_rig.train(spec, *m_device);

    QVERIFY2(run.ended.ok(), run.opened.message().c_str());
    QCOMPARE(run.progress.weightsHash, before.progress.weightsHash);
    const RunSpec record = runSpecFromJson(m_rig.row(run.id).configJson).value();
    QCOMPARE(record.rank, 4);
    QVERIFY(record.rankStabilised);
    QCOMPARE(record.targets, "q_proj,down_proj");
    QCOMPARE(record.trainLayers, "1");
    QCOMPARE(record.alphaPattern, first.alphaPattern);
    QCOMPARE(record.trainedTokens, "30,31,32,7");
    // The record is enough: the folder may go.
    spec.steps = 6;
    spec.outDir += " gone";
    spec.checkpointEvery = 3;
    spec.learningRate = 1e-2;
    const Outcome stopped = m_rig.train(spec, *m_device, stopAt(3));
    fs::remove_all(before.dir);
    const Outcome resumed = m_rig.resume(stopped.dir, *m_device);
    QVERIFY2(resumed.ended.ok(), resumed.opened.message().c_str());
    QCOMPARE(resumed.progress.step, 6);
}

void TestAdapterRuns::settingsBesideAnAdapterAreRefused()
{
    const Outcome before = m_rig.train(adapterSpec(m_rig, "theirs"), *m_device);
    RunSpec spec = adapterSpec(m_rig, "ours");
    spec.adapterDir = (before.dir / "adapter").string();
    spec.rank = 8;

    const Outcome run = m_rig.train(spec, *m_device);

    QVERIFY2(contains(run.opened.message(), "come with this adapter (rank 4, alpha 4)"),
        run.opened.message().c_str());
    QVERIFY(!fs::exists(spec.outDir));
}

void TestAdapterRuns::theAdapterOfAnotherModelIsRefused()
{
    const Outcome before = m_rig.train(adapterSpec(m_rig, "of one"), *m_device);
    const ChangedModel other;
    RunSpec spec = m_rig.spec("of another");
    spec.method = "lora";
    spec.modelDir = other.folder.path();
    spec.adapterDir = (before.dir / "adapter").string();

    const Outcome run = m_rig.train(spec, *m_device);

    QCOMPARE(run.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(run.opened.message(), "trained beside a model with other weights"),
        run.opened.message().c_str());
    InferenceOptions options;
    options.adapter = spec.adapterDir;
    const auto loaded = InferenceModel::load(other.folder.path(), options, *m_device);
    QVERIFY2(contains(loaded.status().message(), "trained beside a model with other weights"),
        loaded.status().message().c_str());
}

void TestAdapterRuns::aModelThatWasChangedIsNoticedOnResume()
{
    const ChangedModel model;
    RunSpec spec = adapterSpec(m_rig, "changed");
    spec.modelDir = model.folder.path();
    spec.checkpointEvery = 4;
    const Outcome stopped = m_rig.train(spec, *m_device, stopAt(4));
    QCOMPARE(stopped.progress.step, 4);
    const std::string weights = readFile(model.folder.path("model.safetensors"));
    model.add("model.layers.1.mlp.up_proj.weight", 0.25F);

    const Outcome refused = m_rig.resume(spec.outDir, *m_device);

    QCOMPARE(refused.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(refused.opened.message(), "is not the model the run began with"),
        refused.opened.message().c_str());
    model.folder.write("model.safetensors", weights); // nothing is lost
    const Outcome resumed = m_rig.resume(spec.outDir, *m_device);
    QVERIFY2(resumed.ended.ok(), resumed.opened.message().c_str());
    QCOMPARE(resumed.progress.step, 12);
}

// Without a folder to write to.
void TestAdapterRuns::theModelsOwnFileIsReadAndNothingIsWritten()
{
    const Outcome plain = m_rig.train(adapterSpec(m_rig, "in memory"), *m_device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    RunSpec spec = adapterSpec(m_rig, "from its file");
    spec.policy = "ssd-vertical";
    spec.policyOptions = {{"weights-on-disk", "1"}};
    const std::string weights = readFile(m_rig.model.path("model.safetensors"));

    const Outcome run = m_rig.train(spec, *m_device);

    QVERIFY2(run.ended.ok(), run.opened.message().c_str());
    QCOMPARE(run.progress.weightsHash, plain.progress.weightsHash);
    QVERIFY(readFile(m_rig.model.path("model.safetensors")) == weights);
    const std::string messages = m_rig.messages(run.id);
    QVERIFY(contains(messages, "are read from " + std::string(m_rig.model.path())));
    QVERIFY(!contains(messages, "was prepared from the model"));
    const auto reader = std::move(RunReader::open(m_rig.database)).value();
    double read = 0.0;
    double written = 0.0;
    const std::vector<StepRow> steps = std::move(reader->steps(run.id, 0, 100)).value();
    for (const StepRow& row : steps) {
        read += static_cast<double>(row.diskReadBytes);
        written += static_cast<double>(row.diskWriteBytes);
    }
    QVERIFY(read > 0.0);
    QCOMPARE(written, 0.0);
}

void TestAdapterRuns::aPreparedModelIsKeptForTheNextRun()
{
    const Folder scratch;
    const auto files = [&] {
        std::vector<fs::path> found;
        for (const auto& entry : fs::recursive_directory_iterator(scratch.path()))
            if (entry.path().extension() == ".safetensors")
                found.push_back(entry.path());
        return found;
    };
    RunSpec spec = adapterSpec(m_rig, "prepares");
    spec.method = "qlora";
    spec.precision = PrecisionChoice::BF16;
    const Outcome plain = m_rig.train(spec, *m_device);
    spec.policy = "ssd-vertical";
    spec.policyOptions = {{"weights-on-disk", "0.5"}};
    spec.diskPaths = {scratch.path()};
    spec.outDir += " from the disk";

    const Outcome first = m_rig.train(spec, *m_device);

    QVERIFY2(first.ended.ok(), first.opened.message().c_str());
    QCOMPARE(first.progress.weightsHash, plain.progress.weightsHash);
    QCOMPARE(files().size(), std::size_t{1});
    QVERIFY(contains(m_rig.messages(first.id), "was prepared from the model and stays"));
    const auto made = fs::last_write_time(files().front());
    spec.outDir += " again";
    const Outcome second = m_rig.train(spec, *m_device);
    QVERIFY2(second.ended.ok(), second.opened.message().c_str());
    QCOMPARE(second.progress.weightsHash, plain.progress.weightsHash);
    QVERIFY(fs::last_write_time(files().front()) == made);
    spec.diskPaths.clear();
    spec.outDir += " nowhere";
    const Outcome refused = m_rig.train(spec, *m_device);
    QVERIFY2(contains(refused.opened.message(), "no scratch folder is named for a file of"),
        refused.opened.message().c_str());
}

void TestAdapterRuns::layersThatAreNotTrainedKeepTheirBits()
{
    const Outcome run = m_rig.train(layerSpec(m_rig, "layers"), *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());

    const auto before = tensorsOf(m_rig.model.path());
    const auto after = tensorsOf(run.dir / "model");

    QCOMPARE(after.size(), before.size());
    for (const auto& [name, values] : before) {
        const bool isTrained = name.starts_with("model.layers.1.");
        QVERIFY2((after.at(name) == values) != isTrained, name.c_str());
    }
}

void TestAdapterRuns::layersGoOnWithoutTheModelTheyBeganWith()
{
    const Outcome plain = m_rig.train(layerSpec(m_rig, "never stopped"), *m_device);
    const ChangedModel model(nlohmann::json{{"initializer_range", 0.02}});
    fs::copy_file(m_rig.model.path("model.safetensors"), model.folder.path("model.safetensors"),
        fs::copy_options::overwrite_existing);
    RunSpec spec = layerSpec(m_rig, "without");
    spec.modelDir = model.folder.path();
    spec.checkpointEvery = 4;
    (void)m_rig.train(spec, *m_device, stopAt(4));
    fs::remove(model.folder.path("model.safetensors"));

    const Outcome resumed = m_rig.resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.opened.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, plain.progress.weightsHash);
}

void TestAdapterRuns::defaultsAreThoseOfAdapters()
{
    RunSpec spec = m_rig.spec("defaults");
    spec.learningRate = 0.0;
    const RunSpec full = setUpRun(spec, 10).value().spec;
    QCOMPARE(full.learningRate, 2e-5);
    QCOMPARE(full.weightDecay, 0.01);
    spec.method = "lora";
    QCOMPARE(spec.rank, 16);
    spec.rank = 5; // the smallest matrix has 12 rows

    const RunSetup setup = setUpRun(spec, 10).value();

    QCOMPARE(setup.spec.learningRate, 2e-4);
    QCOMPARE(setup.spec.weightDecay, 0.0);
    QCOMPARE(setup.spec.alpha, 5.0);
    std::int64_t trained = 0; // rank x (rows + columns) of every matrix of the blocks
    for (const NamedTensor& tensor : wholeModel(setup.table).tensors)
        if (tensor.shape.size() == 2 && contains(tensor.name, ".layers."))
            trained += 5 * (tensor.shape[0] + tensor.shape[1]);
    QCOMPARE(setup.table.parameters, trained);
    spec.policy = "auto";
    const RunSetup chosen = setUpRun(spec, 10).value();
    QCOMPARE(chosen.spec.policy, "resident");
}

// B is zero, so its first step is the learning rate in every element whose gradient is not tiny.
void TestAdapterRuns::theRateOfBIsItsOwn()
{
    RunSpec spec = adapterSpec(m_rig, "lora plus");
    spec.steps = 1;
    spec.warmupSteps = 0;
    spec.schedule = ScheduleKind::Constant;
    spec.learningRate = 1e-3;
    spec.loraPlus = 16.0;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    spec.outDir += " plain";
    spec.loraPlus = 1.0;
    const Outcome plain = m_rig.train(spec, *m_device);

    const auto trained = tensorsOfAdapter(run.dir / "adapter");
    const auto alike = tensorsOfAdapter(plain.dir / "adapter");
    for (const auto& [name, values] : trained) {
        float largest = 0.0F;
        for (const float value : values)
            largest = std::max(largest, std::abs(value));
        if (name.ends_with(".lora_B.weight"))
            QVERIFY2(std::abs(largest - 16e-3F) < 1e-5F, name.c_str());
        else
            QCOMPARE(values, alike.at(name)); // its gradient is zero as long as B is
    }
}

// At a rate of 1e-3 their first step is the rate of B, as that of B is; decay leaves them alone.
void TestAdapterRuns::magnitudesBeginAsTheLengthsOfTheRows()
{
    RunSpec spec = adapterSpec(m_rig, "magnitudes");
    spec.dora = true;
    spec.steps = 1;
    spec.warmupSteps = 0;
    spec.schedule = ScheduleKind::Constant;
    spec.learningRate = 1e-3;
    spec.loraPlus = 4.0;
    spec.weightDecay = 0.5;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.opened.message().c_str());

    const auto trained = tensorsOfAdapter(run.dir / "adapter");
    const auto model = tensorsOf(m_rig.model.path());
    constexpr std::string_view kEnd = ".lora_magnitude_vector";
    int compared = 0;
    for (const auto& [name, values] : trained) {
        if (!name.ends_with(kEnd))
            continue;
        ++compared;
        constexpr std::string_view kBegin = "base_model.model.";
        const std::string weight =
            name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size()) + ".weight";
        const std::vector<float>& matrix = model.at(weight);
        const std::size_t in = matrix.size() / values.size();
        float largest = 0.0F;
        for (std::size_t row = 0; row < values.size(); ++row) {
            double squares = 0.0;
            for (std::size_t col = 0; col < in; ++col)
                squares += std::pow(static_cast<double>(matrix[row * in + col]), 2.0);
            largest =
                std::max(largest, std::abs(values[row] - static_cast<float>(std::sqrt(squares))));
        }
        QVERIFY2(std::abs(largest - 4e-3F) < 1e-5F, name.c_str());
    }
    QCOMPARE(compared, 14);
}

void TestAdapterRuns::aRunGoesOnFromDora()
{
    RunSpec first = adapterSpec(m_rig, "dora first");
    first.dora = true;
    first.savedModules = "lm_head,embed_tokens";
    first.evalData = first.data;
    first.evalEvery = 12;
    const Outcome before = m_rig.train(first, *m_device);
    QVERIFY2(before.ended.ok(), before.opened.message().c_str());
    const std::string folder = (before.dir / "adapter").string();
    RunSpec spec = m_rig.spec("dora second");
    spec.method = "lora";
    spec.adapterDir = folder;
    spec.steps = 1;
    spec.learningRate = 1e-30;

    const Outcome run = m_rig.train(spec, *m_device);

    QVERIFY2(run.ended.ok(), run.opened.message().c_str());
    QCOMPARE(run.progress.weightsHash, before.progress.weightsHash);
    const RunSpec record = runSpecFromJson(m_rig.row(run.id).configJson).value();
    QVERIFY(record.dora);
    QCOMPARE(record.savedModules, "embed_tokens,lm_head");
    const double saved = lossOf(m_rig, m_rig.model.path(), folder);
    QVERIFY(std::abs(saved - before.progress.evalLoss) < 1e-6);
    QVERIFY(saved < lossOf(m_rig, m_rig.model.path()) - 0.1);
}

void TestAdapterRuns::dropoutActsInTrainingAlone()
{
    RunSpec spec = adapterSpec(m_rig, "without dropout");
    spec.evalData = spec.data;
    spec.evalEvery = 12;
    const Outcome plain = m_rig.train(spec, *m_device);
    spec.outDir += " and with it";
    spec.dropout = 0.4;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());

    const double saved = lossOf(m_rig, m_rig.model.path(), (run.dir / "adapter").string());

    QVERIFY(run.progress.weightsHash != plain.progress.weightsHash);
    QVERIFY(std::abs(saved - run.progress.evalLoss) < 1e-6);
    QVERIFY(std::abs(run.progress.lastLoss - plain.progress.lastLoss) > 1e-4);
    QCOMPARE(readPeftConfig(run.dir / "adapter").value().dropout, 0.4);
    QCOMPARE(runSpecFromJson(m_rig.row(plain.id).configJson).value().dropout, 0.0);
}

void TestAdapterRuns::dropoutComesWithAnAdapterUnlessOneIsGiven()
{
    RunSpec first = adapterSpec(m_rig, "dropped first");
    first.dropout = 0.25;
    first.steps = 1;
    const Outcome before = m_rig.train(first, *m_device);
    RunSpec spec = m_rig.spec("dropped second");
    spec.method = "lora";
    spec.adapterDir = (before.dir / "adapter").string();

    QCOMPARE(setUpRun(spec, 10).value().spec.dropout, 0.25);
    spec.dropout = 0.0;
    QCOMPARE(setUpRun(spec, 10).value().spec.dropout, 0.0);
    QCOMPARE(setUpRun(spec, 10).value().micro.dropoutColumns, 0);
}

void TestAdapterRuns::aQuantisedModelTrainsAnAdapterAndNothingElse()
{
    const fs::path nf4 = fs::path(sharedData()) / "adapters" / "tiny_nf4";
    if (!fs::exists(nf4))
        QSKIP("the shared test data is not there");
    const Folder model; // the shared one has no tokenizer
    fs::copy(nf4, model.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    fs::copy_file(fs::path(sharedData()) / "models/stories260K/tokenizer.model",
        model.path("tokenizer.model"), fs::copy_options::skip_existing);
    RunSpec spec = adapterSpec(m_rig, "beside nf4");
    spec.modelDir = model.path();
    spec.evalData = spec.data;
    spec.evalEvery = 12;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.opened.message().c_str());
    QVERIFY2(run.opened.ok(), run.opened.message().c_str());
    const double saved = lossOf(m_rig, model.path(), (run.dir / "adapter").string());
    QVERIFY(std::abs(saved - run.progress.evalLoss) < 1e-6);

    spec = m_rig.spec("all of nf4");
    spec.modelDir = model.path();
    const Outcome full = m_rig.train(spec, *m_device);
    QCOMPARE(full.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(full.opened.message(), "are quantised (NF4) and cannot be trained"),
        full.opened.message().c_str());
}

void TestAdapterRuns::badSettingsAreRefused_data()
{
    QTest::addColumn<QString>("option");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* option, const char* value, const char* says) {
        QTest::addRow("%s %s", option, value) << QString(option) << QString(value) << QString(says);
    };
    row("rank", "0", "rank is 0; it must be from 1");
    row("rank", "25", "rank 25 does not fit model.layers.0.self_attn.q_proj");
    row("alpha", "0", "alpha is 0, and the adapter would add nothing");
    row("alpha", "-3", "alpha is -3");
    row("dropout", "1", "dropout is 1; it must be");
    row("dropout", "-0.5", "dropout is -0.5; it must be 0 or more");
    row("targets", "q_proj,fc1", "called 'fc1'; there are down_proj, gate_proj");
    row("targets", "/.*query.*/", "leave no module");
    row("rank_pattern", "q_proj=2,.*_proj=3", "give model.layers.0.self_attn.q_proj both");
    row("rank_pattern", "q_proj=two", "rank-pattern: 'two' of q_proj is no number");
    row("train_layers", "0-2", "'0-2' is no layer of this model; it has embedding, blocks 0 to 1");
    row("train_layers", "head", "adapters are in the blocks");
    row("modules_to_save", "lm_head", "the head of this model is its embedding; train both whole");
    row("modules_to_save", "norm", "'norm' cannot be trained whole beside an adapter");
    row("trainable_tokens", "3,x", "trainable-tokens: 'x' is no id of a token");
    row("trainable_tokens", "9-3", "trainable-tokens: '9-3' is no id of a token");
    row("trainable_tokens", "3,1-4", "token 3 is named twice");
    row("method", "full", "rank is an option of adapters");
    row("method", "dora", "method 'dora' is an option of adapters; use lora or qlora");
    row("method", "vera", "method 'vera' is not known; use full, lora or qlora");
    row("policy", "zenflow", "does not train an adapter; use one of auto, resident, streamed");
}

void TestAdapterRuns::badSettingsAreRefused()
{
    QFETCH(QString, option);
    QFETCH(QString, value);
    QFETCH(QString, says);
    RunSpec spec = adapterSpec(m_rig, "refused");
    QVERIFY(readOption(*findSpecField(option.toStdString()), value.toStdString(), spec).ok());

    const Outcome run = m_rig.train(spec, *m_device);

    QCOMPARE(run.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(run.opened.message(), says.toStdString()), run.opened.message().c_str());
    QVERIFY(!fs::exists(spec.outDir));
}

MR_TEST(TestAdapterRuns)

} // namespace mr::test::tst_adapter_runs

#include "tst_adapter_runs.moc"
