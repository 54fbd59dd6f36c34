// Tiny models of every family through a GGUF file and back: the folder that the file stands for has
// the weights, the config and the answers of the model that was exported.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/answer/export_check.h"
#include "core/exchange/gguf_folder.h"
#include "core/model/gguf_layout.h"
#include "core/run/golden_rig.h"
#include "core/run/run_rig.h"
#include "core/save/gguf_export.h"
#include "core/tokenizer/small_bpe.h"
#include "support/test_room.h"
// clang-format on

#include <QtTest>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace mr::test::tst_gguf_families {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A letter for each row of the embedding.
json lettersFor(std::int64_t vocab)
{
    json made = smallBpe();
    made["added_tokens"] = json::array();
    made["model"]["merges"] = json::array();
    made["model"]["vocab"] = json::object();
    for (std::int64_t id = 0; id < std::min<std::int64_t>(vocab, 256); ++id)
        made["model"]["vocab"][letterOf(static_cast<unsigned char>((id + 32) % 256))] = id;
    return made;
}

// A model with a tokenizer beside it, and a cache of its own.
struct Exported {
    // `changes` of the config; where they change sizes the weights are new ones.
    explicit Exported(
        const fs::path& model, const json& changes = json::object(), bool isNew = false)
    {
        fs::create_directory(folder.path("model"));
        if (!isNew)
            fs::copy(model / "model.safetensors", folder.path("model/model.safetensors"));
        json config = json::parse(readFile((model / "config.json").string()));
        for (json* level :
            {&config, config.contains("text_config") ? &config["text_config"] : nullptr})
            if (level != nullptr)
                level->erase("eos_token_id");
        config.update(changes);
        folder.write("model/config.json", config.dump());
        if (isNew)
            writeNewWeights();
        const std::int64_t vocab =
            std::int64_t{valueOf(readModelConfig(folder.path("model"))).vocab};
        folder.write("model/tokenizer.json", lettersFor(vocab).dump());
        qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(folder.path("cache")));
    }

    Result<GgufReport> write(GgufForm form) const
    {
        GgufOptions options;
        options.form = form;
        return exportGguf({folder.path("model")}, folder.path("model.gguf"), options);
    }

    void writeNewWeights() const
    {
        const ModelConfig config = valueOf(readModelConfig(folder.path("model")));
        const ParamTable table = buildParamTable(config);
        const auto weights = initialWeights(config, table, 1);
        require(saveModel(folder.path("model"), config, table, *weights, ExportType::F32, {}));
    }

    Folder folder;
};

std::vector<float> weightsOf(const std::string& folder, const std::string& name)
{
    const ModelConfig config = valueOf(readModelConfig(folder));
    const ParamTable table = buildParamTable(config);
    const auto reader = valueOf(openWeights(folder, config, table));
    std::vector<float> out;
    MasterPiece piece;
    for (const NamedTensor& tensor : table.tensors)
        if (nameInMemory(table, tensor.name).ends_with(name))
            require(forPieces(*reader, {tensor.group, tensor.first, tensor.count()}, piece,
                [&](std::int64_t, const MasterView& view) -> Status {
                    for (std::size_t i = 0; i < view.high.size(); ++i)
                        out.push_back(joinHalves(view.high[i], view.low[i]));
                    return {};
                }));
    return out;
}

CheckQuestions someQuestions()
{
    CheckQuestions questions;
    questions.prompts = {{1, 2, 3, 4}, {30, 40, 7, 45, 12, 10, 20}};
    questions.answerTokens = 12;
    questions.makeDevice = [](std::size_t /*bytes*/) {
        return Result<std::unique_ptr<Device>>(smallDevice());
    };
    return questions;
}

} // namespace

class TestGgufFamilies : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void aFileAnswersAsItsModel_data();
    void aFileAnswersAsItsModel();
    void rowsAreTurnedAndTurnedBack();
    void weightsComeBack();
    void whatLlamaCppCannotComputeIsRefused_data();
    void whatLlamaCppCannotComputeIsRefused();
    void aFileOfAnotherModelIsRefused();
    void aVerdictNamesWhatDiffers();
    void aStopEndsTheCheck();
};

void TestGgufFamilies::initTestCase()
{
    if (!fs::exists(fs::path(sharedData()) / "families"))
        QSKIP("the shared test data is not there");
}

void TestGgufFamilies::aFileAnswersAsItsModel_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("changes");
    QTest::addColumn<bool>("isNew");
    const fs::path families = fs::path(sharedData()) / "families";
    for (const char* family :
        {"ernie4_5", "gemma4", "gemma4_unified", "glm4", "granite", "granite4_dense",
            "hunyuan_v1_dense", "ministral3", "mistral3", "olmo2", "olmo3", "seed_oss", "smollm3"})
        QTest::newRow(family) << QString::fromStdString((families / family).string()) << "{}"
                              << false;
    QTest::newRow("exaone4") << QString::fromStdString((families / "exaone4").string())
                             << R"({"sliding_window": null, "layer_types": null})" << false;
    QTest::newRow("qwen3_5") << QString::fromStdString((families / "qwen3_5").string())
                             << R"({"linear_key_head_dim": 8, "linear_value_head_dim": 8})" << true;
    for (const char* golden : {"gemma", "gqa_tied", "head_dim_untied", "llama3_rope", "mha_untied",
             "phi3", "phi3_partial", "qwen3", "biases"})
        QTest::newRow(golden) << QString::fromStdString((goldens() / golden).string()) << "{}"
                              << false;
    const auto golden = [](const char* name) {
        return QString::fromStdString((goldens() / name).string());
    };
    QTest::newRow("gemma2") << golden("gemma2") << R"({"query_pre_attn_scalar": 10})" << false;
    QTest::newRow("gemma3") << golden("gemma3") << R"({"query_pre_attn_scalar": 14})" << false;
    QTest::newRow("qwen2") << golden("qwen2") << R"({"use_sliding_window": false})" << false;
}

void TestGgufFamilies::aFileAnswersAsItsModel()
{
    QFETCH(QString, model);
    QFETCH(QString, changes);
    QFETCH(bool, isNew);
    const Exported made(model.toStdString(), json::parse(changes.toStdString()), isNew);
    const auto report = made.write(GgufForm::F32);
    QVERIFY2(report.ok(), report.status().message().c_str());
    const auto folder = ggufFolder(made.folder.path("model.gguf"));
    QVERIFY2(folder.ok(), folder.status().message().c_str());

    const auto verdict = checkExport(
        {made.folder.path("model")}, {Result(folder).value().string()}, someQuestions());
    QVERIFY2(verdict.ok(), verdict.status().message().c_str());
    const ExportVerdict own = Result(verdict).value();
    QCOMPARE(own.sameTexts, own.texts);
    QVERIFY(own.sameEnds && own.sameTemplate);
    QCOMPARE(own.sameTokens, own.tokens);
    QVERIFY(own.tokens >= 2);
    QVERIFY2(own.divergence < 1e-9, qPrintable(QString::number(own.divergence)));
}

void TestGgufFamilies::rowsAreTurnedAndTurnedBack()
{
    const GgufOrder pairs{GgufOrder::Kind::Neighbours, 0, 8, 1, 1};
    const std::array<std::int64_t, 8> sources{0, 4, 1, 5, 2, 6, 3, 7};
    for (std::int64_t row = 0; row < 8; ++row) {
        QCOMPARE(pairs.source(row), sources.at(static_cast<std::size_t>(row)));
        QCOMPARE(pairs.source(row + 8), sources.at(static_cast<std::size_t>(row)) + 8);
    }
    // Two groups of three heads of two rows, behind four rows that stay.
    const GgufOrder tiled{GgufOrder::Kind::Tiled, 4, 2, 2, 3};
    const std::array<std::int64_t, 16> placed{0, 1, 2, 3, 4, 5, 10, 11, 6, 7, 12, 13, 8, 9, 14, 15};
    for (std::int64_t row = 0; row < 16; ++row) {
        QCOMPARE(tiled.source(row), placed.at(static_cast<std::size_t>(row)));
        QCOMPARE(tiled.source(tiled.place(row)), row);
        QCOMPARE(pairs.source(pairs.place(row)), row);
    }
}

void TestGgufFamilies::weightsComeBack()
{
    const Exported made(fs::path(sharedData()) / "families" / "qwen3_5",
        {{"linear_key_head_dim", 8}, {"linear_value_head_dim", 8}}, true);
    QVERIFY(made.write(GgufForm::F32).ok());
    const std::string folder = valueOf(ggufFolder(made.folder.path("model.gguf"))).string();
    for (const char* name :
        {"layers.0.linear_attn.in_proj_qkv.weight", "layers.0.mlp.up_proj.weight",
            "layers.0.linear_attn.conv1d.weight", "layers.0.linear_attn.out_proj.weight",
            "layers.0.linear_attn.dt_bias", "layers.3.self_attn.q_proj.weight"}) {
        const auto own = weightsOf(made.folder.path("model"), name);
        QVERIFY2(!own.empty(), name);
        QVERIFY2(own == weightsOf(folder, name), name);
    }
    // Stored as 1 + w and -exp(w).
    for (const char* name : {"layers.0.input_layernorm.weight", "layers.0.linear_attn.A_log"}) {
        const auto own = weightsOf(made.folder.path("model"), name);
        const auto back = weightsOf(folder, name);
        QCOMPARE(back.size(), own.size());
        for (std::size_t i = 0; i < own.size(); ++i)
            QVERIFY2(std::abs(own[i] - back[i]) < 1e-6F, name);
    }
}

void TestGgufFamilies::whatLlamaCppCannotComputeIsRefused_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("changes");
    QTest::addColumn<QString>("words");
    const auto golden = [](const char* name) {
        return QString::fromStdString((goldens() / name).string());
    };
    QTest::newRow("scale of scores") << golden("gemma3") << R"({"query_pre_attn_scalar": 7})"
                                     << "query_pre_attn_scalar is 7";
    QTest::newRow("dynamic positions")
        << golden("gqa_tied") << R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})"
        << "no rope_type \"dynamic\"";
    QTest::newRow("windows of Qwen")
        << golden("qwen2")
        << R"({"use_sliding_window": true, "sliding_window": 8, "max_window_layers": 0})"
        << "no sliding window in this architecture";
    QTest::newRow("still layers") << QString::fromStdString(
                                         (fs::path(sharedData()) / "families" / "smollm3").string())
                                  << R"({"no_rope_layers": [0, 1, 1, 1]})"
                                  << "layer 0 has no positions";
}

void TestGgufFamilies::whatLlamaCppCannotComputeIsRefused()
{
    QFETCH(QString, model);
    QFETCH(QString, changes);
    QFETCH(QString, words);
    const Exported made(model.toStdString(), json::parse(changes.toStdString()));
    const auto report = made.write(GgufForm::F32);
    QVERIFY(!report.ok());
    QVERIFY2(report.status().message().find(words.toStdString()) != std::string::npos,
        report.status().message().c_str());
    QVERIFY(!fs::exists(made.folder.path("model.gguf")));
}

void TestGgufFamilies::aFileOfAnotherModelIsRefused()
{
    const Exported made(goldens() / "qwen3");
    QVERIFY(made.write(GgufForm::F32).ok());
    const fs::path folder = valueOf(ggufFolder(made.folder.path("model.gguf")));
    json config = json::parse(readFile((folder / "config.json").string()));
    config["intermediate_size"] = 8;
    made.folder.write("cache/other.json", config.dump());
    const ModelConfig other = valueOf(readModelConfig(made.folder.path("cache/other.json")));
    const ParamTable table = buildParamTable(other);
    const auto opened = openWeights(folder, other, table);
    QVERIFY(!opened.ok());
    QVERIFY2(
        opened.status().message().find("wrong shapes: blk.0.ffn_gate.weight") != std::string::npos,
        opened.status().message().c_str());
}

void TestGgufFamilies::aVerdictNamesWhatDiffers()
{
    ExportVerdict verdict;
    verdict.texts = 200;
    verdict.sameTexts = 200;
    verdict.tokens = 100;
    verdict.sameTokens = 97;
    verdict.divergence = 1e-4;
    QVERIFY(faultsOf(verdict, {}).empty());
    verdict.sameTexts = 198;
    verdict.otherText = "a\nb";
    verdict.sameTokens = 96;
    verdict.divergence = 2e-4;
    verdict.sameTemplate = false;
    verdict.sameEnds = false;
    const auto faults = faultsOf(verdict, {});
    QCOMPARE(faults.size(), std::size_t{5});
    QVERIFY(contains(faults[0], "2 of 200 texts become other tokens, the first is \"a\\nb\""));
    QVERIFY(contains(faults[3], "the mean KL is 0.0002"));
    QVERIFY(contains(faults[4], "the same in 96.0 % of 100 places"));
    verdict.divergence = std::nan("");
    QCOMPARE(faultsOf(verdict, {}).size(), std::size_t{5});
}

// Asked before each model, prompt and token.
void TestGgufFamilies::aStopEndsTheCheck()
{
    const Exported made(goldens() / "qwen3");
    QVERIFY(made.write(GgufForm::F32).ok());
    const std::string folder = valueOf(ggufFolder(made.folder.path("model.gguf"))).string();
    CheckQuestions questions = someQuestions();
    int calls = 0;
    int stopAt = 0;
    questions.goesOn = [&]() -> Status {
        return ++calls == stopAt ? Status::error(ErrorKind::Cancelled, "enough") : Status();
    };
    const auto ask = [&] { return checkExport({made.folder.path("model")}, {folder}, questions); };
    const auto verdict = ask();
    QVERIFY2(verdict.ok(), verdict.status().message().c_str());
    const int models = 2;
    const auto prompts = static_cast<int>(questions.prompts.size());
    const auto tokens = static_cast<int>(Result(verdict).value().tokens);
    const int whole = calls;
    QVERIFY(whole >= models * (1 + prompts + tokens));
    for (const int stop : {1, 2, 3, whole / 2 + 1, whole}) {
        calls = 0;
        stopAt = stop;
        const Status status = ask().status();
        QVERIFY2(status.kind() == ErrorKind::Cancelled, status.message().c_str());
        QCOMPARE(status.message(), std::string("enough"));
        QCOMPARE(calls, stop);
    }
}

MR_TEST(TestGgufFamilies)

} // namespace mr::test::tst_gguf_families

#include "tst_gguf_families.moc"
