// The checkpoint size reported before a run, against a checkpoint that was written.

#include "core/choose/checkpoint_size.h"
#include "core/model/safetensors.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::test::tst_checkpoint_size {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSpareBytes = 24 << 10; // names and small files, at most

std::int64_t bytesBelow(const fs::path& folder)
{
    std::int64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        bytes += entry.is_directory() ? 0 : static_cast<std::int64_t>(entry.file_size());
    return bytes;
}

// The small model within one that sees, whose tower has 256 KiB; all but the embedding is in F32.
void writeSeeingModel(const Folder& small, const Folder& folder)
{
    using nlohmann::json;
    json text = json::parse(smallModelConfig());
    text.erase("architectures");
    text["model_type"] = "mistral";
    const json config = {{"architectures", {"Mistral3ForConditionalGeneration"}},
        {"model_type", "mistral3"}, {"text_config", text}};
    fs::create_directories(folder.path("tower"));
    const std::string tower = folder.path("tower/model.safetensors");
    const SafetensorSource pixels{"vision_tower.patch.weight", "F32", {64, 1024}, 256 << 10,
        [](std::uint64_t, std::span<std::byte>) { return Status(); }};
    ModelConfig read = parseModelConfig(config.dump(), "config.json").value();
    const bool isWritten = writeSafetensors(tower, {pixels}).ok();
    const auto file = std::move(SafetensorsReader::open(tower)).value();
    read.carried = {{pixels.name, tower, file.entries().at(pixels.name)}};
    for (const NamedTensor& tensor : buildParamTable(read).tensors)
        if (!tensor.name.ends_with("embed_tokens.weight"))
            read.wideTensors.push_back(tensor.name);
    const ParamTable table = buildParamTable(read);
    if (!isWritten || !saveModel(folder.path("model"), read, table, *initialWeights(read, table, 3),
                          ExportType::BF16, small.path())
                           .ok())
        qFatal("writing a test model failed");
}

} // namespace

class TestCheckpointSize : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void whatIsToldIsWhatIsWritten_data();
    void whatIsToldIsWhatIsWritten();
    void towersAndTensorsInF32AreTold();
    void whatAWholeRunSavesIsTold_data();
    void whatAWholeRunSavesIsTold();
    void checkpointsByTimeAreCountedByTheForecast_data();
    void checkpointsByTimeAreCountedByTheForecast();

private:
    RunRig m_rig;
};

void TestCheckpointSize::whatIsToldIsWhatIsWritten_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<bool>("bf16");
    QTest::newRow("resident, fp32") << "resident" << false;
    QTest::newRow("resident, bf16") << "resident" << true;
    QTest::newRow("zero-offload, fp32") << "zero-offload" << false;
    QTest::newRow("deep-optimizer-states, compact") << "deep-optimizer-states compact" << true;
    QTest::newRow("resident, compact") << "resident compact" << true;
    QTest::newRow("zenflow, fp32") << "zenflow" << false;
    QTest::newRow("zenflow, bf16") << "zenflow" << true;
    QTest::newRow("zenflow, compact") << "zenflow compact" << true;
    QTest::newRow("zero-offload-dpu, bf16") << "zero-offload-dpu" << true;
    QTest::newRow("an adapter, fp32") << "resident lora" << false;
    QTest::newRow("an adapter, bf16") << "resident lora" << true;
    QTest::newRow("an adapter and the embedding, bf16") << "resident lora embedding" << true;
    QTest::newRow("a layer, bf16") << "resident layer" << true;
    QTest::newRow("blocks in turn, fp32") << "resident blocks" << false;
    QTest::newRow("blocks in turn, bf16") << "streamed blocks" << true;
    QTest::newRow("factored, fp32") << "resident factored" << false;
    QTest::newRow("factored, 24 bit") << "streamed factored" << true;
    QTest::newRow("factored, an adapter") << "streamed factored lora" << true;
}

void TestCheckpointSize::whatIsToldIsWhatIsWritten()
{
    QFETCH(QString, policy);
    QFETCH(bool, bf16);
    RunSpec spec = m_rig.spec(QTest::currentDataTag());
    const QStringList words = policy.split(QLatin1Char(' '));
    spec.policy = words.first().toStdString();
    if (words.contains("compact"))
        spec.policyOptions["state"] = "compact";
    if (words.contains("lora")) {
        spec.method = "lora";
        spec.rank = 4;
    }
    if (words.contains("embedding"))
        spec.savedModules = "embed_tokens,lm_head";
    if (words.contains("factored"))
        spec.optimizer = Optimizer::Factored;
    if (words.contains("blocks")) {
        spec.train = TrainOrder::Blocks;
        spec.blockSteps = 1;
    }
    if (words.contains("layer"))
        spec.trainLayers = "1";
    if (spec.policy == "zenflow" || spec.policy == "zero-offload-dpu")
        spec.policyOptions["warmup"] = "1";
    if (spec.policy == "zenflow")
        spec.policyOptions["urgent"] = "0.5";
    spec.precision = bf16 ? PrecisionChoice::BF16 : PrecisionChoice::F32;
    spec.steps = 7; // 1, then 4 and 2 of the next window
    const auto device = smallDevice();

    const Outcome run = m_rig.train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    if (spec.policy == "zenflow")
        QVERIFY(run.progress.carry.stepsIntoWindow > 0 && run.progress.carry.hostJob);
    auto setup = setUpRun(readRunSpec(spec.outDir).value(), 0);
    QVERIFY2(setup.ok(), setup.status().message().c_str());
    const auto told = static_cast<std::int64_t>(checkpointBytes(setup.value()));
    const std::int64_t written = bytesBelow(run.dir / "checkpoints" / "step-00000007");
    const std::string text =
        std::to_string(told) + " told, " + std::to_string(written) + " written";
    QVERIFY2(told >= written, text.c_str());
    QVERIFY2(told - written < kSpareBytes, text.c_str());
}

void TestCheckpointSize::towersAndTensorsInF32AreTold()
{
    const Folder folder;
    writeSeeingModel(m_rig.model, folder);
    RunSpec spec = m_rig.spec("sees");
    spec.modelDir = folder.path("model");
    spec.precision = PrecisionChoice::BF16;
    spec.steps = 2;
    const auto device = smallDevice();

    const Outcome run = m_rig.train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    auto setup = setUpRun(readRunSpec(spec.outDir).value(), 0);
    QVERIFY2(setup.ok(), setup.status().message().c_str());
    const auto told = static_cast<std::int64_t>(exportBytes(setup.value()));
    const std::int64_t written = bytesBelow(run.dir / "model");
    const std::string text =
        std::to_string(told) + " told, " + std::to_string(written) + " written";
    QVERIFY2(told >= written, text.c_str());
    QVERIFY2(told - written < kSpareBytes, text.c_str());
}

void TestCheckpointSize::whatAWholeRunSavesIsTold_data()
{
    QTest::addColumn<int>("every");
    QTest::addColumn<int>("checkpoints");
    QTest::newRow("at the end") << 0 << 1;
    QTest::newRow("and between") << 2 << 3;
    QTest::newRow("the last one is due") << 3 << 2;
}

void TestCheckpointSize::whatAWholeRunSavesIsTold()
{
    QFETCH(int, every);
    QFETCH(int, checkpoints);
    RunSpec spec = m_rig.spec("whole " + std::to_string(every));
    spec.steps = 6;
    spec.checkpointEvery = every;
    spec.keepCheckpoints = 10;
    const auto device = smallDevice();

    const Outcome run = m_rig.train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    auto setup = setUpRun(readRunSpec(spec.outDir).value(), 0);
    QVERIFY2(setup.ok(), setup.status().message().c_str());
    const auto told = static_cast<std::int64_t>(savedBytesOfRun(setup.value()));
    const std::int64_t written =
        bytesBelow(run.dir / "checkpoints") + bytesBelow(run.dir / "model");
    const std::string text =
        std::to_string(told) + " told, " + std::to_string(written) + " written";
    QVERIFY2(told >= written, text.c_str());
    QVERIFY2(told - written < (checkpoints + 1) * kSpareBytes, text.c_str());
    const std::int64_t one = bytesBelow(run.dir / "checkpoints" / "step-00000006");
    QVERIFY(one > (checkpoints + 1) * kSpareBytes); // one more or less would be seen
    QCOMPARE(reportOf(setup.value()).diskWriteBytesOfRun, static_cast<std::uint64_t>(told));
    setup.value().spec.steps = 0; // not known
    QCOMPARE(reportOf(setup.value()).diskWriteBytesOfRun, std::uint64_t{0});
}

void TestCheckpointSize::checkpointsByTimeAreCountedByTheForecast_data()
{
    QTest::addColumn<int>("every");
    QTest::addColumn<int>("minutes");
    QTest::addColumn<bool>("isForecast");
    QTest::addColumn<int>("checkpoints"); // in 100 steps, a minute each
    QTest::newRow("by time alone") << 0 << 15 << true << 7;
    QTest::newRow("one between two by steps") << 20 << 15 << true << 10;
    QTest::newRow("those by steps come first") << 10 << 15 << true << 10;
    QTest::newRow("not by time") << 0 << 0 << true << 1;
    QTest::newRow("without a forecast") << 0 << 15 << false << 1;
}

void TestCheckpointSize::checkpointsByTimeAreCountedByTheForecast()
{
    QFETCH(int, every);
    QFETCH(int, minutes);
    QFETCH(bool, isForecast);
    QFETCH(int, checkpoints);
    RunSpec spec = m_rig.spec("by time");
    spec.steps = 100;
    spec.checkpointEvery = every;
    spec.checkpointMinutes = minutes;
    auto setup = setUpRun(spec, 60);
    QVERIFY2(setup.ok(), setup.status().message().c_str());
    setup.value().forecast.known = isForecast;
    setup.value().forecast.stepSeconds = isForecast ? 60.0 : 0.0;

    const std::uint64_t told = savedBytesOfRun(setup.value());

    QCOMPARE(told, static_cast<std::uint64_t>(checkpoints) * checkpointBytes(setup.value()) +
                       exportBytes(setup.value()));
}

MR_TEST(TestCheckpointSize)

} // namespace mr::test::tst_checkpoint_size

#include "tst_checkpoint_size.moc"
