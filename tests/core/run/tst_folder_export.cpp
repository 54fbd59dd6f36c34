// Models with an adapter in their weights: against PEFT's merge, against the run that trained it,
// and the refusals.

#include "core/run/run_rig.h"
#include "core/run/saved_loss.h"
#include "core/save/folder_export.h"
#include "support/test_room.h"

#include <QCryptographicHash>
#include <QtTest>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace mr::test::tst_folder_export {

namespace fs = std::filesystem;

namespace {

struct Tensor {
    std::vector<float> values;
    std::vector<std::uint16_t> high;
};

Tensor tensorOf(const fs::path& folder, const std::string& name)
{
    const ModelConfig config = readModelConfig(folder.string()).value();
    const ParamTable table = buildParamTable(config);
    const auto reader = std::move(openWeights(folder, config, table)).value();
    Tensor out;
    MasterPiece piece;
    for (const NamedTensor& tensor : table.tensors)
        if (tensor.name == name)
            (void)forPieces(*reader, {tensor.group, tensor.first, tensor.count()}, piece,
                [&](std::int64_t, const MasterView& view) {
                    for (std::size_t i = 0; i < view.high.size(); ++i)
                        out.values.push_back(joinHalves(view.high[i], view.low[i]));
                    out.high.assign(view.high.begin(), view.high.end());
                    return Status();
                })
                .ok();
    return out;
}

} // namespace

class TestFolderExport : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void weightsAreThosePeftMerges_data();
    void weightsAreThosePeftMerges();
    void aMergedRunAnswersAsItsAdapterDoes_data();
    void aMergedRunAnswersAsItsAdapterDoes();
    void aTensorInF32BesideOthersIsMergedInF32();
    void aModelIsWrittenInAnotherType_data();
    void aModelIsWrittenInAnotherType();
    void aNumberBeyondTheTypeIsRefused();
    void progressEndsWhole();
    void aStopLeavesNothing();
    void badInputIsRefusedAndLeavesNothing();

private:
    RunRig m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
};

void TestFolderExport::weightsAreThosePeftMerges_data()
{
    QTest::addColumn<QString>("name");
    QTest::newRow("plain") << "tiny_lora";
    QTest::newRow("rank stabilised, with patterns") << "tiny_rslora";
    QTest::newRow("DoRA") << "tiny_dora";
}

void TestFolderExport::weightsAreThosePeftMerges()
{
    QFETCH(QString, name);
    const fs::path shared = sharedData();
    if (shared.empty())
        QSKIP("the shared test data is not there");
    const fs::path adapters = shared / "adapters";
    std::ifstream file(adapters / "tiny_expected.json");
    const auto expected = nlohmann::json::parse(file)[name.toStdString()];
    const ModelPlace place{
        (shared / "models/stories260K").string(), (adapters / name.toStdString()).string()};
    const Folder folder;

    QVERIFY(exportFolder(place, folder.path("wide"), {ExportType::F32}).ok());
    // PEFT had loaded the model in bf16.
    const std::string half = folder.path("half");
    const ModelConfig config = readModelConfig(place.model).value();
    const ParamTable table = buildParamTable(config);
    const auto weights = std::move(openWeights(place.model, config, table)).value();
    QVERIFY(saveModel(half, config, table, *weights, ExportType::BF16, place.model).ok());
    QVERIFY(exportFolder({half, place.adapter}, folder.path("bf16"), {}).ok());

    for (const auto& [tensor, want] : expected["merged_fp32"].items()) {
        const Tensor got = tensorOf(folder.path("wide"), tensor);
        double norm = 0.0;
        for (const float value : got.values)
            norm += static_cast<double>(value) * static_cast<double>(value);
        QVERIFY(std::abs(std::sqrt(norm) - want["norm"].get<double>()) < 1e-5);
        for (std::size_t i = 0; i < 4; ++i)
            QVERIFY(std::abs(static_cast<double>(got.values[i]) - want["first4"][i].get<double>()) <
                    1e-6);
    }
    if (!expected.contains("bf16_merge"))
        return;
    const Tensor rounded = tensorOf(folder.path("bf16"), "model.layers.0.self_attn.q_proj.weight");
    const QByteArray bytes(reinterpret_cast<const char*>(rounded.high.data()),
        static_cast<qsizetype>(rounded.high.size() * 2));
    QCOMPARE(QCryptographicHash::hash(bytes, QCryptographicHash::Sha256).toHex().toStdString(),
        expected["bf16_merge"]["sha256_one_rounding_layer0_q"].get<std::string>());
}

void TestFolderExport::aMergedRunAnswersAsItsAdapterDoes_data()
{
    QTest::addColumn<bool>("dora");
    QTest::addColumn<QString>("modules");
    QTest::addColumn<QString>("tokens");
    QTest::newRow("LoRA") << false << QString() << QString();
    QTest::newRow("DoRA") << true << QString() << QString();
    QTest::newRow("head and embedding") << false << "lm_head,embed_tokens" << QString();
    QTest::newRow("rows of the embedding") << false << QString() << "9-11,5,30-60";
}

void TestFolderExport::aMergedRunAnswersAsItsAdapterDoes()
{
    QFETCH(bool, dora);
    QFETCH(QString, modules);
    QFETCH(QString, tokens);
    RunSpec spec = m_rig.spec(std::string("merged ") + QTest::currentDataTag());
    spec.dora = dora;
    spec.savedModules = modules.toStdString();
    spec.trainedTokens = tokens.toStdString();
    spec.method = "lora";
    spec.rank = 4;
    spec.learningRate = 3e-2;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const ModelPlace place = modelPlaceOf(run.dir.string()).value();
    const Folder folder;

    const auto report = exportFolder(place, folder.path("out"), {});

    QVERIFY2(report.ok(), report.status().message().c_str());
    const MergeCount count = Result(report).value().count;
    QVERIFY(count.unchanged > 0 && count.unchanged < count.elements);
    const double apart = lossOf(m_rig, place.model, place.adapter);
    QVERIFY(std::abs(lossOf(m_rig, folder.path("out")) - apart) < 1e-4);
    QVERIFY(std::abs(lossOf(m_rig, m_rig.model.path()) - apart) > 0.05);
    QVERIFY(fs::exists(folder.path("out/tokenizer.model")));
    QCOMPARE(modelPlaceOf(folder.path("out")).value().adapter, std::string());
}

void TestFolderExport::aTensorInF32BesideOthersIsMergedInF32()
{
    const std::string name = "model.layers.0.mlp.down_proj.weight";
    const Folder folder;
    ModelConfig config = readModelConfig(m_rig.model.path()).value();
    config.wideTensors = {name};
    const ParamTable table = buildParamTable(config);
    QVERIFY(saveModel(folder.path("mixed"), config, table, *initialWeights(config, table, 9),
        ExportType::BF16, m_rig.model.path())
                .ok());
    RunSpec spec = m_rig.spec("mixed");
    spec.modelDir = folder.path("mixed");
    spec.method = "lora";
    spec.rank = 2;
    spec.learningRate = 3e-2;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const ModelPlace place = modelPlaceOf(run.dir.string()).value();

    QVERIFY(exportFolder(place, folder.path("half"), {ExportType::BF16}).ok());
    QVERIFY(exportFolder(place, folder.path("wide"), {ExportType::F32}).ok());

    QVERIFY(
        tensorOf(folder.path("half"), name).values == tensorOf(folder.path("wide"), name).values);
    QVERIFY(
        tensorOf(folder.path("half"), name).values != tensorOf(folder.path("mixed"), name).values);
    const std::string other = "model.layers.0.mlp.up_proj.weight";
    QVERIFY(
        tensorOf(folder.path("half"), other).values != tensorOf(folder.path("wide"), other).values);
}

void TestFolderExport::aModelIsWrittenInAnotherType_data()
{
    QTest::addColumn<int>("type");
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<float>("error"); // of a number's own size
    QTest::newRow("F16") << static_cast<int>(ExportType::F16) << "float16" << 0x1p-11F;
    QTest::newRow("BF16") << static_cast<int>(ExportType::BF16) << "bfloat16" << 0x1p-8F;
    QTest::newRow("F32") << static_cast<int>(ExportType::F32) << "float32" << 0.0F;
}

void TestFolderExport::aModelIsWrittenInAnotherType()
{
    QFETCH(int, type);
    QFETCH(QString, dtype);
    QFETCH(float, error);
    const std::string name = "model.layers.0.mlp.up_proj.weight";
    const Folder folder;
    FolderOptions options{static_cast<ExportType>(type)};
    options.shardBytes = 20'000;

    const auto report = exportFolder({m_rig.model.path()}, folder.path("out"), options);

    QVERIFY2(report.ok(), report.status().message().c_str());
    QVERIFY(fs::exists(folder.path("out/model.safetensors.index.json")));
    QCOMPARE(readModelConfig(folder.path("out")).value().dtype, dtype.toStdString());
    const std::vector<float> want = tensorOf(m_rig.model.path(), name).values;
    const std::vector<float> got = tensorOf(folder.path("out"), name).values;
    QCOMPARE(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
        QVERIFY(std::abs(got[i] - want[i]) <= error * std::abs(want[i]) + 0x1p-25F * error);
    QCOMPARE(got == want, error == 0.0F);
}

void TestFolderExport::aNumberBeyondTheTypeIsRefused()
{
    const Folder folder;
    const ModelConfig config = readModelConfig(m_rig.model.path()).value();
    const ParamTable table = buildParamTable(config);
    const auto large =
        madeWeights(table, [](const NamedTensor& tensor, std::int64_t, const MasterView& out) {
            for (std::size_t i = 0; i < out.high.size(); ++i) {
                const float value = tensor.name.ends_with("1.mlp.up_proj.weight") ? 70000.0F : 1.0F;
                out.high[i] = highHalf(value);
                out.low[i] = lowHalf(value);
            }
        });
    QVERIFY(
        saveModel(folder.path("large"), config, table, *large, ExportType::F32, m_rig.model.path())
            .ok());

    const auto refused =
        exportFolder({folder.path("large")}, folder.path("out"), {ExportType::F16});

    QVERIFY2(contains(refused.status().message(), "layers.1.mlp.up_proj.weight holds 70000"),
        refused.status().message().c_str());
    QVERIFY(!fs::exists(folder.path("out")) && !fs::exists(folder.path(".out.part")));
}

void TestFolderExport::progressEndsWhole()
{
    const Folder folder;
    std::uint64_t last = 0;
    std::uint64_t whole = 0;
    FolderOptions options;
    options.progress = [&](std::uint64_t done, std::uint64_t all) -> Status {
        if (done < last || done > all || (whole != 0 && all != whole))
            return Status::error(ErrorKind::InvalidArgument, "it went back");
        last = done;
        whole = all;
        return {};
    };
    const auto report = exportFolder({m_rig.model.path()}, folder.path("out"), options);
    QVERIFY2(report.ok(), report.status().message().c_str());
    QVERIFY(whole > 0 && last == whole);
    QVERIFY(whole <= fs::file_size(folder.path("out/model.safetensors")));
}

void TestFolderExport::aStopLeavesNothing()
{
    const Folder folder;
    FolderOptions options;
    int calls = 0;
    bool isHalfThere = false;
    options.progress = [&](std::uint64_t, std::uint64_t) -> Status {
        isHalfThere = isHalfThere || fs::exists(folder.path(".out.part"));
        return ++calls < 2 ? Status() : Status::error(ErrorKind::Cancelled, "stopped");
    };
    const auto report = exportFolder({m_rig.model.path()}, folder.path("out"), options);
    QVERIFY(!report.ok() && report.status().kind() == ErrorKind::Cancelled);
    QVERIFY(calls == 2 && isHalfThere);
    QVERIFY(fs::is_empty(folder.path()));
}

void TestFolderExport::badInputIsRefusedAndLeavesNothing()
{
    const Folder folder;
    RunSpec spec = m_rig.spec("adapter");
    spec.method = "lora";
    spec.rank = 2;
    const Outcome run = m_rig.train(spec, *m_device);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const auto found = modelPlaceOf(run.dir.string());
    QVERIFY2(found.ok(), found.status().message().c_str());
    const ModelPlace place = Result(found).value();
    fs::create_directories(folder.path("there"));
    auto refused = exportFolder(place, folder.path("there"), {});
    QVERIFY(contains(refused.status().message(), "is there already"));
    refused = exportFolder(place, folder.path("out"), {{}, true});
    QVERIFY(contains(refused.status().message(), "was trained beside the original weights"));
    // Another model of this shape.
    const Folder other;
    fs::copy(m_rig.model.path(), other.path(),
        fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    const ModelConfig config = readModelConfig(other.path()).value();
    const ParamTable table = buildParamTable(config);
    QVERIFY(saveModel(other.path("new"), config, table, *initialWeights(config, table, 9),
        ExportType::F32, other.path())
                .ok());
    refused = exportFolder({other.path("new"), place.adapter}, folder.path("out"), {});
    QVERIFY2(contains(refused.status().message(), "beside a model with other weights"),
        refused.status().message().c_str());
    QVERIFY(fs::is_empty(folder.path("there")));
    QVERIFY(!fs::exists(folder.path("out")) && !fs::exists(folder.path(".out.part")));
}

MR_TEST(TestFolderExport)

} // namespace mr::test::tst_folder_export

#include "tst_folder_export.moc"
