// Models that see, whose text part is trained: two levels of a config, three spellings of names,
// tensors that are carried byte by byte.

#include "core/model/adapter_modules.h"
#include "core/model/carried_tensors.h"
#include "core/model/config_texts.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <filesystem>

namespace mr::test::tst_wrapper {

namespace {

namespace fs = std::filesystem;

// Fields of the outer level and of the text.
std::string wrapped(const std::string& outer, const std::string& inner)
{
    return R"({"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
        "vision_config": {"hidden_size": 16}, "spatial_merge_size": 2)" +
           std::string(outer.empty() ? "" : ", ") + outer +
           R"(, "text_config": {"model_type": "mistral", "hidden_size": 8, "intermediate_size": 4,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4,
        "vocab_size": 5, "max_position_embeddings": 16)" +
           (inner.empty() ? "" : ", ") + inner + "}}";
}

constexpr const char* kUntied = R"("tie_word_embeddings": false)";

constexpr const char* kQwen35 =
    R"({"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "text_config": {"hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 5,
        "max_position_embeddings": 16, "full_attention_interval": 1, "linear_num_key_heads": 1,
        "linear_num_value_heads": 1, "linear_key_head_dim": 4, "linear_value_head_dim": 4,
        "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-6}})";

// Names of one layer as a file spells them.
std::map<std::string, RawTensor> textTensors(const ModelConfig& config, bool hasHead)
{
    std::map<std::string, RawTensor> all;
    ModelConfig whole = config;
    whole.tiedEmbedding = !hasHead;
    char fill = 1;
    for (const NamedTensor& tensor : buildParamTable(whole).tensors)
        all[tensor.name] = {"BF16", tensor.shape,
            std::string(static_cast<std::size_t>(2 * tensor.count()), ++fill)};
    return all;
}

// A tower and a projector beside them.
std::map<std::string, RawTensor> tensorsOf(const ModelConfig& config, bool hasHead)
{
    std::map<std::string, RawTensor> all = textTensors(config, hasHead);
    all["vision_tower.patch.weight"] = {"F16", {2, 1, 3}, std::string("tower bytes.")};
    all["multi_modal_projector.norm.weight"] = {"F32", {2}, std::string("project.")};
    return all;
}

struct Folder {
    explicit Folder(const std::string& text, const TensorPrefix& prefix, bool hasHead)
    {
        put(path / "config.json", text);
        ModelConfig spelled = config(text);
        spelled.prefix = prefix;
        tensors = tensorsOf(spelled, hasHead);
        write();
    }

    void write() const { put(path / "model.safetensors", safetensors(tensors)); }

    QTemporaryDir dir;
    fs::path path = dir.path().toStdString();
    std::map<std::string, RawTensor> tensors;
};

Status saved(const Folder& folder, const fs::path& out)
{
    const ModelConfig config = std::move(readModelConfig(folder.path)).value();
    const ParamTable table = buildParamTable(config);
    auto weights = openWeights(folder.path, config, table);
    if (!weights.ok())
        return weights.status();
    return saveModel(out, config, table, *weights.value(), ExportType::BF16, {});
}

std::string hashOf(const Folder& folder)
{
    const ModelConfig config = std::move(readModelConfig(folder.path)).value();
    const ParamTable table = buildParamTable(config);
    const auto weights = std::move(openWeights(folder.path, config, table)).value();
    return std::move(weightsHash(table, *weights)).value();
}

} // namespace

class TestWrapper : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theTextPartIsReadWithDefaultsOfItsOwnClass()
    {
        const ModelConfig c = config(wrapped("", kUntied));
        QCOMPARE(c.architecture, std::string("Mistral3ForConditionalGeneration"));
        QVERIFY(c.isWrapped && !c.tiedEmbedding);
        QCOMPARE(c.window(), std::int64_t{4096});
        QCOMPARE(c.ropes.front().theta, 1e4);
        QCOMPARE(c.rmsNormEps, 1e-6);
        const ModelConfig own = config(wrapped(R"("pad_token_id": 3)",
            R"("rope_theta": 50.0, "sliding_window": 7, "tie_word_embeddings": true)"));
        QVERIFY(own.ropes.front().theta == 50.0 && own.window() == 7);
        QVERIFY(own.tiedEmbedding && own.padToken == 3);
        const ModelConfig newer = config(wrapped("", R"("rope_parameters": {"rope_type": "default",
            "rope_theta": 60.0}, "architectures": ["Mistral3ForConditionalGeneration"])"));
        QCOMPARE(newer.ropes.front().theta, 60.0);
        std::string ministral = wrapped("", kUntied);
        ministral.replace(ministral.find("\"mistral\""), 9, "\"ministral3\"");
        QCOMPARE(config(ministral).ropes.front().theta, 1e6);
        QCOMPARE(config(ministral).rmsNormEps, 1e-5);
        QVERIFY(!config(kQwen35).tiedEmbedding);
        const ModelConfig gemma = config(
            R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
                "boi_token_index": 3, "mm_tokens_per_image": 256, "text_config": {
                "hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 6,
                "model_type": "gemma3_text", "sliding_window": 4}})");
        QVERIFY(gemma.vocab == 262208 && gemma.block.heads == 8 && gemma.tiedEmbedding);
    }

    // Its class leaves the cap out, which the class of the text alone applies.
    void aCapOfLogitsWithinGemma3IsRefused()
    {
        QVERIFY(has(refusal(
                        R"({"architectures": ["Gemma3ForConditionalGeneration"], "text_config": {
                "hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 6,
                "final_logit_softcapping": 30.0, "sliding_window": 4}})"),
            "text_config.final_logit_softcapping"));
    }

    // Without files to look at, names are those of the published models.
    void namesWithoutFilesAreThePublishedOnes()
    {
        QCOMPARE(
            config(wrapped("", kUntied)).prefix.model, std::string_view("language_model.model."));
        QCOMPARE(config(kQwen35).prefix.model, std::string_view("model.language_model."));
    }

    void contradictionsAreRefusedWithBothFields()
    {
        const std::string tie = refusal(wrapped(R"("tie_word_embeddings": true)", kUntied));
        QVERIFY(has(tie, "\"tie_word_embeddings\" is true") &&
                has(tie, "\"text_config.tie_word_embeddings\" is false"));
        QVERIFY(has(refusal(wrapped(R"("vocab_size": 6)", kUntied)), "text_config.vocab_size"));
        QVERIFY(has(refusal(wrapped(R"("attention_dropout": 0.1)", kUntied)), "dropout"));
        QVERIFY(has(refusal(wrapped(R"("unheard_of": 2)", kUntied)), "unheard_of"));
        std::string other = wrapped("", kUntied);
        other.replace(other.find("\"mistral\""), 9, "\"qwen4_exp\"");
        QVERIFY(has(refusal(other), "text_config.model_type") && has(refusal(other), "qwen4_exp"));
        QVERIFY(has(refusal(R"({"model_type": "mistral3"})"), "text_config"));
    }

    void everySpellingIsReadAndKept_data()
    {
        QTest::addColumn<int>("spelling");
        for (int i = 0; i < 3; ++i)
            QTest::addRow("%s", std::string(kSpellings[static_cast<std::size_t>(i)].model).c_str())
                << i;
    }

    void everySpellingIsReadAndKept()
    {
        QFETCH(int, spelling);
        const TensorPrefix& prefix = kSpellings[static_cast<std::size_t>(spelling)];
        const Folder folder(wrapped("", kUntied), prefix, true);
        const fs::path out = folder.path / "out";

        const Status status = saved(folder, out);

        QVERIFY2(status.ok(), status.message().c_str());
        const auto read = std::move(SafetensorsReader::open(out / "model.safetensors")).value();
        QCOMPARE(read.entries().size(), folder.tensors.size());
        for (const auto& [name, tensor] : folder.tensors) {
            const auto entry = read.entries().find(name);
            QVERIFY2(entry != read.entries().end(), name.c_str());
            QCOMPARE(entry->second.dtype, tensor.dtype);
            QCOMPARE(entry->second.shape, tensor.shape);
            std::string bytes(tensor.bytes.size(), '\0');
            QVERIFY(read.readBytes(name, 0, std::as_writable_bytes(std::span(bytes))).ok());
            QVERIFY2(bytes == tensor.bytes, name.c_str());
        }
        const ModelConfig again = std::move(readModelConfig(out)).value();
        QVERIFY(again.prefix == prefix && again.carried.size() == 2);
        const ParamTable table = buildParamTable(again);
        AdapterSettings settings;
        settings.rank = 2;
        const auto modules = std::move(adapterModules(table, settings)).value();
        QCOMPARE(
            modules.front().name, std::string("model.language_model.layers.0.self_attn.q_proj"));
        QCOMPARE(blockOf(modules.front().name), std::int64_t{0});
    }

    void layersThatPredictMoreTokensAreCarried()
    {
        QTemporaryDir dir;
        const fs::path path = dir.path().toStdString();
        put(path / "config.json", kQwen35);
        std::map<std::string, RawTensor> tensors = textTensors(config(kQwen35), true);
        tensors["mtp.fc.weight"] = {"F32", {1}, "four"};
        tensors["model.visual.patch.weight"] = {"F32", {1}, "also"};
        put(path / "model.safetensors", safetensors(tensors));

        const ModelConfig found = std::move(readModelConfig(path)).value();

        QCOMPARE(found.carried.size(), std::size_t{2});
        const ParamTable table = buildParamTable(found);
        const auto weights = std::move(openWeights(path, found, table)).value();
        QVERIFY(saveModel(path / "out", found, table, *weights, ExportType::BF16, {}).ok());
        const auto out = std::move(SafetensorsReader::open(path / "out/model.safetensors")).value();
        QCOMPARE(out.entries().at("mtp.fc.weight").dtype, std::string("F32"));
        QCOMPARE(out.entries().size(), tensors.size());
    }

    // Neither level says it, and programs differ in what they take then.
    void theFilesSayWhetherTheHeadIsTheEmbedding()
    {
        for (const bool hasHead : {false, true}) {
            const Folder folder(wrapped("", ""), kSpellings[2], hasHead);
            QCOMPARE(std::move(readModelConfig(folder.path)).value().tiedEmbedding, !hasHead);
        }
    }

    void theHashCoversWhatIsCarried()
    {
        Folder folder(wrapped("", kUntied), kSpellings[2], true);
        const std::string before = hashOf(folder);
        QCOMPARE(hashOf(folder), before);
        folder.tensors["vision_tower.patch.weight"].bytes[3] = 'X';
        folder.write();
        QVERIFY(hashOf(folder) != before);
    }

    void aFileThatChangedUnderARunIsNotCopied()
    {
        Folder folder(wrapped("", kUntied), kSpellings[2], true);
        const ModelConfig config = std::move(readModelConfig(folder.path)).value();
        const ParamTable table = buildParamTable(config);
        const auto weights = std::move(openWeights(folder.path, config, table)).value();
        folder.tensors["another"] = {"F32", {1}, "four"};
        folder.write();

        const Status status =
            saveModel(folder.path / "out", config, table, *weights, ExportType::BF16, {});

        QCOMPARE(status.kind(), ErrorKind::DataCorrupt);
        QVERIFY(has(status.message(), "multi_modal_projector") &&
                has(status.message(), "model.safetensors"));
    }

    void otherTensorsAreStillSurplus()
    {
        Folder folder(wrapped("", kUntied), kSpellings[2], true);
        folder.tensors["language_model.model.layers.0.extra.weight"] = {"F32", {1}, "four"};
        folder.write();
        QVERIFY(has(saved(folder, folder.path / "out").message(), "layers.0.extra.weight"));
    }
};

MR_TEST(TestWrapper)

} // namespace mr::test::tst_wrapper

#include "tst_wrapper.moc"
