// Gemma 4: layers with sizes of their own in both spellings of its config, k and v of other layers,
// inputs of each block, and the tensors of its files that no step changes.

#include "core/device/adamw.h"
#include "core/model/config_texts.h"
#include "core/model/input_table.h"
#include "core/model/layout.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace mr::test::tst_gemma4 {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTypes =
    R"("layer_types": ["sliding_attention", "full_attention", "sliding_attention",
       "sliding_attention", "full_attention"])";

std::string gemma(const std::string& fields)
{
    std::string text = familyConfig("Gemma4ForCausalLM", "gemma4_text",
        R"("head_dim": 4, "sliding_window": 4)" + std::string(fields.empty() ? "" : ", ") + fields);
    return text.replace(text.find("layers\":2"), 9, "layers\":5");
}

std::string withTypes(const std::string& fields)
{
    return gemma(std::string(kTypes) + (fields.empty() ? "" : ", ") + fields);
}

// With k and v of the first two layers in the others, and inputs of four columns.
constexpr const char* kShared =
    R"("num_kv_shared_layers": 3, "use_double_wide_mlp": true, "global_head_dim": 6,
       "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 7)";

// A number for each block.
template <typename Number>
std::vector<std::int64_t> numbers(const ModelConfig& config, Number number)
{
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < config.layers; ++i)
        all.push_back(static_cast<std::int64_t>(number(config.kindOf(i))));
    return all;
}

std::vector<std::int64_t> headDims(const ModelConfig& config)
{
    return numbers(config, [](const BlockKind& kind) { return kind.headDim; });
}

using Row = std::vector<std::int64_t>;

const std::string kTable = "model.embed_tokens_per_layer.weight";

std::string floats(const std::vector<float>& values)
{
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// A folder of the model with all that published files hold.
struct Folder {
    Folder()
    {
        const std::string text = withTypes(kShared);
        put(path / "config.json", text);
        tensors = tinyTensors(buildParamTable(config(text)));
        std::vector<float> table(7 * 20);
        for (std::size_t i = 0; i < table.size(); ++i)
            table[i] = 1.0F + static_cast<float>(i) / 512.0F;
        tensors[kTable] = {"F32", {7, 20}, floats(table)};
        for (int layer = 0; layer < 5; ++layer) {
            const std::string prefix = "model.layers." + std::to_string(layer) + ".";
            const float scale = 0.5F + static_cast<float>(layer);
            tensors[prefix + "layer_scalar"] = {"F32", {1}, floats({scale})};
        }
        for (const char* name : {"k_proj.weight", "v_proj.weight", "k_norm.weight"})
            tensors[std::string("model.layers.4.self_attn.") + name] = {"F32", {1}, floats({9.0F})};
        write();
    }

    void write() const { put(path / "model.safetensors", safetensors(tensors)); }
    ModelConfig read() const { return std::move(readModelConfig(path)).value(); }

    QTemporaryDir dir;
    fs::path path = dir.path().toStdString();
    std::map<std::string, RawTensor> tensors;
};

} // namespace

class TestGemma4 : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void bothSpellingsGiveLayersTheirSizes()
    {
        const ModelConfig published = config(withTypes(
            R"("global_head_dim": 6, "num_global_key_value_heads": 1, "attention_k_eq_v": true,
               "hidden_size_per_layer_input": 0)"));
        const ModelConfig newer = config(withTypes(
            R"("per_layer_config": {"1": {"head_dim": 6, "num_key_value_heads": 1},
               "4": {"head_dim": 6, "num_key_value_heads": 1}}, "attention_k_eq_v": true,
               "hidden_size_per_layer_input": 0)"));
        for (const ModelConfig& c : {published, newer}) {
            QCOMPARE(headDims(c), (Row{4, 6, 4, 4, 6}));
            QCOMPARE(numbers(c, [](const BlockKind& kind) { return kind.kvHeads; }),
                (Row{2, 1, 2, 2, 1}));
            QCOMPARE(numbers(c,
                         [](const BlockKind& kind) {
                             return kind.keyValues == KeyValueSource::KeysAreValues;
                         }),
                (Row{0, 1, 0, 0, 1}));
            QVERIFY(c.block.normsValues && c.block.scoreScale == 1.0 && !c.onePlusNorms);
            QVERIFY(c.tiedEmbedding && c.padToken == 0 && c.layerInput == 0);
            QCOMPARE(c.turnedColumns(c.ropes[0]), std::int64_t{6});
            QCOMPARE(c.turnedColumns(c.ropes[1]), std::int64_t{4});
        }
        QVERIFY(published.blocks == newer.blocks);
    }

    // Without attention_k_eq_v the heads of k are those of all layers.
    void headsOfKeysCountWhereTheyAreValues()
    {
        const ModelConfig c = config(withTypes(R"("num_global_key_value_heads": 1)"));
        QCOMPARE(headDims(c), (Row{4, 512, 4, 4, 512}));
        QVERIFY(c.kindOf(1).kvHeads == 2);
        QVERIFY(c.kindOf(1).keyValues == KeyValueSource::Projected);
    }

    void missingFieldsAreThoseOfTheClass()
    {
        std::string text = gemma("");
        text.replace(text.find("layers\":5"), 9, "layers\":7");
        const ModelConfig c = config(text);
        QCOMPARE(numbers(c, [](const BlockKind& kind) { return kind.window; }),
            (Row{4, 4, 4, 4, 4, 0, 0})); // the last one, too
        QCOMPARE(c.layerInput, std::int64_t{256});
        QCOMPARE(c.inputVocab, std::int64_t{262144});
        QCOMPARE(c.ropes[0].theta, 1e6);
        QCOMPARE(c.ropes[1].theta, 1e4);
        QVERIFY(c.ropes[0].scaling.type == RopeType::Proportional);
        QCOMPARE(c.logitCap, 0.0);
        QVERIFY(c.notes.empty());
        const ModelConfig unified = config(familyConfig("Gemma4UnifiedForCausalLM",
            "gemma4_unified_text", R"("use_bidirectional_attention": "vision", "head_dim": 4)"));
        QVERIFY(unified.layerInput == 0 && unified.window() == 1024);
    }

    void aWindowOfTheLastLayerIsLeftOutAndSaidSo()
    {
        const ModelConfig c = config(gemma(
            R"("layer_types": ["full_attention", "full_attention", "full_attention",
               "sliding_attention", "sliding_attention"])"));
        QCOMPARE(c.kindOf(4).window, std::int64_t{0});
        QVERIFY(c.notes.size() == 1 && has(c.notes.front(), "the last layer"));
    }

    // The first int(0.25 * 16 / 2) pairs of 8, with exponents over the whole head.
    void aPartOfThePairsTurns()
    {
        RopeScaling scaling;
        scaling.type = RopeType::Proportional;
        scaling.share = 0.25;
        const RopeFrequencies made = ropeFrequencies(scaling, {1e4, 16, 64}, 64);
        QCOMPARE(made.inverse.size(), std::size_t{8});
        QCOMPARE(made.inverse[0], 1.0F);
        QVERIFY(std::abs(made.inverse[1] - std::pow(1e4F, -2.0F / 16.0F)) < 1e-7F);
        QVERIFY(std::all_of(
            made.inverse.begin() + 2, made.inverse.end(), [](float turn) { return turn == 0.0F; }));
    }

    void layersReadKeysOfTheLastOneOfTheirTypeBefore()
    {
        const ModelConfig c = config(withTypes(kShared));
        QCOMPARE(c.keyGivers, (Row{0, 1}));
        QCOMPARE(numbers(c, [](const BlockKind& kind) { return kind.sharedKeys; }),
            (Row{0, 1, 0, 0, 1}));
        QCOMPARE(numbers(c, [](const BlockKind& kind) { return kind.readsKeys(); }),
            (Row{0, 0, 1, 1, 1}));
        QCOMPARE(
            numbers(c, [](const BlockKind& kind) { return kind.readsLast; }), (Row{0, 0, 0, 1, 1}));
        QCOMPARE(numbers(c, [](const BlockKind& kind) { return kind.intermediate; }),
            (Row{4, 4, 8, 8, 8}));
        std::vector<std::string> names;
        for (const NamedTensor& tensor : buildParamTable(c).tensors)
            names.push_back(tensor.name);
        const auto holds = [&](const char* name) { return std::ranges::count(names, name) == 1; };
        QVERIFY(holds("model.layers.2.self_attn.q_norm.weight"));
        QVERIFY(!holds("model.layers.2.self_attn.k_norm.weight"));
        QVERIFY(!holds("model.layers.2.self_attn.v_proj.weight"));
        QVERIFY(holds("model.layers.1.self_attn.v_proj.weight"));
        QVERIFY(holds("model.per_layer_model_projection.weight"));
        QVERIFY(!holds(kTable.c_str()));
    }

    // Windows, wider MLPs and keys of another layer make work; which layer's keys they are does
    // not.
    void layersOfEqualWorkAreOfOneKind()
    {
        const ModelConfig c = config(withTypes(kShared));
        MicroShape micro;
        micro.seqLen = 16;
        const ModelShape shape = modelShape(c, buildParamTable(c), micro);
        std::vector<int> kinds;
        for (std::size_t block = 1; block <= 5; ++block)
            kinds.push_back(shape.groups[block].kind);
        QCOMPARE(kinds, (std::vector<int>{0, 1, 2, 2, 3}));
    }

    void settingsThatAreNotBuiltAreRefused_data()
    {
        QTest::addColumn<QString>("fields");
        QTest::addColumn<QString>("why");
        const auto row = [](const char* fields, const char* why) {
            QTest::newRow(why) << QString(fields) << QString(why);
        };
        row(R"("enable_moe_block": true, "num_experts": 4)", "take a dense edition");
        row(R"("use_bidirectional_attention": "all")", "changes nothing for text");
        row(R"("per_layer_config": {"9": {"head_dim": 6}})", "which is no layer");
        row(R"("per_layer_config": {"1x": {"head_dim": 6}})", "\"1x\"");
        row(R"("per_layer_config": [1])", "an object of sizes");
        row(R"("per_layer_config": {"1": {"sliding_window": 6}})", "\"sliding_window\"");
        row(R"("per_layer_config": {"1": {"head_dim": 6}, "4": {"head_dim": 8}})",
            "heads of different lengths");
        row(R"("per_layer_config": {"1": {"head_dim": 6}}, "global_head_dim": 8)",
            "says otherwise than global_head_dim");
        row(R"("global_head_dim": 7)", "must be even");
        row(R"("num_global_key_value_heads": 3, "attention_k_eq_v": true)", "must be a multiple");
        row(R"("num_kv_shared_layers": 5)", "is 5; it must be below num_hidden_layers (5)");
        row(R"("num_kv_shared_layers": 4)",
            "no layer before layer 1 has the attention type of layer 1");
        row(R"("vocab_size_per_layer_input": 4)", "tokens would have no row");
        row(R"("rope_parameters": {"sliding_attention": {"rope_type": "proportional",
            "rope_theta": 10.0}})",
            "plain positions");
        row(R"("rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 10.0,
            "factor": 8.0, "original_max_position_embeddings": 16, "truncate": false}})",
            "does not read where layers turn by their type");
        row(R"("attention_dropout": 0.1)", "dropout");
        row(R"("rope_parameters": {"full_attention": {"rope_type": "none"}})",
            "rope_parameters, full_attention: type 'none'");
    }

    void settingsThatAreNotBuiltAreRefused()
    {
        QFETCH(QString, fields);
        QFETCH(QString, why);
        const std::string message = refusal(withTypes(fields.toStdString()));
        QVERIFY2(has(message, why.toStdString()), message.c_str());
    }

    void tensorsThatNoStepChangesAreCarried()
    {
        const Folder folder;
        const ModelConfig c = folder.read();
        QCOMPARE(c.outputScales, (std::vector<float>{0.5F, 1.5F, 2.5F, 3.5F, 4.5F}));
        std::vector<std::string> carried;
        for (const CarriedTensor& tensor : buildParamTable(c).carried)
            carried.push_back(tensor.name);
        QCOMPARE(carried.size(), std::size_t{9});
        QVERIFY(std::ranges::count(carried, kTable) == 1);
        QVERIFY(std::ranges::count(carried, "model.layers.4.self_attn.k_norm.weight") == 1);
        ModelConfig trained = c;
        trained.trainsInputs = true;
        QCOMPARE(buildParamTable(trained).carried.size(), std::size_t{8});
    }

    // Each block has its columns of the table; hash and saved file have them side by side.
    void aTrainedTableLiesWithTheBlocks()
    {
        const Folder folder;
        const ModelConfig frozen = folder.read();
        ModelConfig trained = frozen;
        trained.trainsInputs = true;
        const ParamTable table = buildParamTable(trained);
        const ParamSlot* slot = table.find(GroupId{3}, SlotKind::InputTable);
        QVERIFY(slot != nullptr && slot->rows == 7 && slot->cols == 4);
        const auto weights = std::move(openWeights(folder.path, trained, table)).value();
        std::vector<std::uint16_t> high(28);
        std::vector<std::int16_t> low(28);
        QVERIFY(weights->read(GroupId{3}, slot->first, {high, low}).ok());
        for (std::size_t i = 0; i < high.size(); ++i) // columns 8 to 11 of rows of 20
            QCOMPARE(joinHalves(high[i], low[i]),
                1.0F + static_cast<float>(i / 4 * 20 + 8 + i % 4) / 512.0F);

        const ParamTable other = buildParamTable(frozen);
        const auto whole = std::move(openWeights(folder.path, frozen, other)).value();
        QCOMPARE(weightsHash(table, *weights).value(), weightsHash(other, *whole).value());

        const QTemporaryDir dir;
        const fs::path out = dir.path().toStdString();
        QVERIFY(saveModel(out, trained, table, *weights, ExportType::F32, {}).ok());
        const auto tableIn = [](const fs::path& path) {
            std::string bytes(7 * 20 * 4, '\0');
            const auto reader = std::move(SafetensorsReader::open(path)).value();
            return reader.readBytes(kTable, 0, std::as_writable_bytes(std::span(bytes))).ok()
                       ? bytes
                       : std::string();
        };
        QCOMPARE(tableIn(out / "model.safetensors"), folder.tensors.at(kTable).bytes);
        QVERIFY(saveModel(out, trained, table, *weights, ExportType::BF16, {}).ok());
        const auto reader = std::move(SafetensorsReader::open(out / "model.safetensors")).value();
        std::vector<float> row(20);
        QVERIFY(reader.readFloats(kTable, 20, row).ok());
        QCOMPARE(row[12], 1.0625F); // 1 + 32/512
    }

    // Its parts are one tensor of the file; a table that is only read is missed, too.
    void aMissingTableIsNamedOnceWithItsFolder()
    {
        Folder folder;
        folder.tensors.erase(kTable);
        folder.write();
        for (const bool trains : {false, true}) {
            ModelConfig c = folder.read();
            c.trainsInputs = trains;
            const std::string message =
                findWeights(folder.path, c, buildParamTable(c)).status().message();
            QVERIFY2(message.ends_with("missing tensors: " + kTable), message.c_str());
            QVERIFY(has(message, folder.path.string()));
        }
    }

    void aTableOfAnotherShapeIsRefused()
    {
        Folder folder;
        folder.tensors[kTable].shape = {10, 14};
        folder.write();
        ModelConfig trained = folder.read();
        trained.trainsInputs = true;
        const std::string message =
            findWeights(folder.path, trained, buildParamTable(trained)).status().message();
        QVERIFY2(has(message, "[10, 14], config.json asks for [7, 20]"), message.c_str());
    }

    void aScaleThatIsNoNumberIsRefused()
    {
        Folder folder;
        const std::string name = "model.layers.3.layer_scalar";
        folder.tensors[name] = {"F32", {2}, floats({1.0F, 1.0F})};
        folder.write();
        QVERIFY(has(readModelConfig(folder.path).status().message(),
            "has shape [2]; it must be one number"));
        folder.tensors[name] = {"F32", {1}, floats({std::nanf("")})};
        folder.write();
        QVERIFY(has(readModelConfig(folder.path).status().message(), "is not finite"));
        folder.tensors.erase(name);
        folder.write();
        QCOMPARE(folder.read().outputScales[3], 1.0F);
    }

    void rowsOfTheTableComeFromTheFile()
    {
        const Folder folder;
        const ModelConfig c = folder.read();
        auto opened = InputTable::open(c);
        QVERIFY2(opened.ok(), opened.status().message().c_str());
        const std::array<std::int32_t, 4> ids{6, 0, 6, 3};

        std::vector<float> rows(4 * 20);
        QVERIFY(
            opened.value()
                .read(ids, matrixView(reinterpret_cast<std::byte*>(rows.data()), DType::F32, 4, 20))
                .ok());
        for (std::size_t i = 0; i < rows.size(); ++i)
            QCOMPARE(rows[i],
                1.0F + static_cast<float>(static_cast<std::size_t>(ids[i / 20]) * 20 + i % 20) /
                           512.0F);

        std::vector<std::uint16_t> halves(4 * 20);
        QVERIFY(opened.value()
                    .read(ids,
                        matrixView(reinterpret_cast<std::byte*>(halves.data()), DType::BF16, 4, 20))
                    .ok());
        // 1 + 60/512 lies between two BF16 numbers, at a tie: to the even one.
        QCOMPARE(halves[3 * 20], std::uint16_t{0x3F8F});
        QCOMPARE(halves[3 * 20 + 2], std::uint16_t{0x3F90}); // 1 + 62/512
    }

    void aTableThatIsNotThereIsMissed()
    {
        Folder folder;
        folder.tensors[kTable].shape = {10, 14};
        folder.write();
        QVERIFY(has(InputTable::open(folder.read()).status().message(),
            "is [10, 14], config.json asks for [7, 20]"));
        folder.tensors[kTable] = {"I32", {7, 20}, std::string(7 * 20 * 4, '\0')};
        folder.write();
        QVERIFY(has(InputTable::open(folder.read()).status().message(), "\"I32\", want F32"));
        folder.tensors.erase(kTable);
        folder.write();
        QVERIFY(has(InputTable::open(folder.read()).status().message(),
            folder.path.string() + ": missing tensors: " + kTable));
    }

    void aModelThatSeesHasItsTextPart()
    {
        const std::string text =
            R"({"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4",
                "audio_config": null, "boa_token_id": 1, "eoa_token_index": 2, "image_token_id": 3,
                "eos_token_id": [1, 106], "tie_word_embeddings": true, "vision_config": {"a": 1},
                "text_config": {"model_type": "gemma4_text", "hidden_size": 8,
                "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 6, "intermediate_size": 4,
                "head_dim": 4, "eos_token_id": 1, "final_logit_softcapping": 30.0, "hidden_size_per_layer_input": 2}})";
        const ModelConfig c = config(text);
        QVERIFY(c.isWrapped && c.vocab == 262144 && c.layerInput == 2);
        QCOMPARE(c.eosTokens, (Row{1, 106}));
        QCOMPARE(c.logitCap, 30.0);
        for (const char* name : {"model.vision_tower.a", "model.embed_audio.b",
                 "model.language_model.layers.0.layer_scalar",
                 "model.language_model.embed_tokens_per_layer.weight"})
            QVERIFY2(isCarried(c, name), name);
        QVERIFY(!isCarried(c, "model.language_model.embed_tokens.weight"));
        QCOMPARE(buildParamTable(c).tensors.front().name,
            std::string("model.language_model.embed_tokens.weight"));
    }
};

MR_TEST(TestGemma4)

} // namespace mr::test::tst_gemma4

#include "tst_gemma4.moc"
