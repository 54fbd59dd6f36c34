// Adapters that peft wrote: its loss, its gradients, its merged weights; and what is refused.

#include "core/base/file.h"
#include "core/data/batch_stream.h"
#include "core/device/cpu/cpu_device.h"
#include "core/model/export_plan.h"
#include "core/model/peft_folder.h"
#include "core/prove/exact_check.h"
#include "core/prove/run_gradients.h"
#include "core/step/run_master.h"
#include "support/master_buffers.h"
#include "support/shared_data.h"
#include "support/test_room.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mr::test::tst_peft_adapters {

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& file)
{
    auto text = readWholeFile(file, std::uint64_t{1} << 20);
    return text.ok() ? std::move(text).value() : std::string();
}

bool has(const std::string& message, std::string_view part)
{
    return message.find(part) != std::string::npos;
}

QJsonObject jsonOf(const fs::path& file)
{
    return QJsonDocument::fromJson(QByteArray::fromStdString(contents(file))).object();
}

// One sequence; every token but the first is a target.
std::vector<MicroBatchData> batchOf(const QJsonArray& ids)
{
    TokenSequence sequence;
    for (const auto& id : ids) {
        sequence.tokens.push_back(static_cast<TokenId>(id.toInt()));
        sequence.trained.push_back(1);
    }
    std::vector<MicroBatchData> batch(1);
    fillMicroBatch({&sequence, 1}, {static_cast<std::int64_t>(ids.size()), 1, 1}, batch.front());
    return batch;
}

double normOf(std::span<const float> values)
{
    double sum = 0.0;
    for (const float value : values)
        sum += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(sum);
}

std::span<const float> tensorIn(const RunGradients& gradients, const NamedTensor& tensor)
{
    return std::span(gradients.of[static_cast<std::size_t>(tensor.group.value)])
        .subspan(static_cast<std::size_t>(tensor.first), static_cast<std::size_t>(tensor.count()));
}

std::unique_ptr<Device> smallDevice()
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{256} << 20;
    options.threads = 1;
    return std::move(makeCpuDevice(options)).value();
}

} // namespace

class TestPeftAdapters : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void lossAndGradientsAreThoseOfPeft_data();
    void lossAndGradientsAreThoseOfPeft();
    void aSavedFolderIsReadBack_data() { lossAndGradientsAreThoseOfPeft_data(); }
    void aSavedFolderIsReadBack();
    void whatIsNotTheAdapterItSaysIsRefused_data();
    void whatIsNotTheAdapterItSaysIsRefused();
    void fieldsThatChangeNothingAreTaken();
    void aTiedEmbeddingIsOneInBothItsTensors();
    void otherTensorsAreRefused();

private:
    fs::path adapter(const QString& name) const
    {
        return m_shared / "adapters" / name.toStdString();
    }
    std::string whyRefused(const std::string& config);

    const fs::path m_shared = sharedData();
    QTemporaryDir m_folder;
};

// Beside the model in NF4 the vectors are kept apart.
QJsonObject expected(const QJsonObject& all, const QString& name, bool nf4)
{
    QJsonObject want = all[name].toObject();
    if (!nf4)
        return want;
    const QJsonObject apart = all[QStringLiteral("nf4")].toObject();
    want[QStringLiteral("ce")] = apart[name + QStringLiteral("_ce")];
    want[QStringLiteral("grad")] = apart[name + QStringLiteral("_grad")];
    return want;
}

void TestPeftAdapters::lossAndGradientsAreThoseOfPeft_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("nf4");
    QTest::newRow("LoRA on all linear modules") << QStringLiteral("tiny_lora") << false;
    QTest::newRow("rsLoRA with patterns of rank and alpha")
        << QStringLiteral("tiny_rslora") << false;
    QTest::newRow("DoRA") << QStringLiteral("tiny_dora") << false;
    QTest::newRow("LoRA beside a model in NF4") << QStringLiteral("tiny_lora") << true;
}

void TestPeftAdapters::lossAndGradientsAreThoseOfPeft()
{
    QFETCH(const QString, name);
    QFETCH(const bool, nf4);
    if (!fs::exists(adapter(name)))
        QSKIP("no shared data (MILLRACE_SHARED)");
    const QJsonObject all = jsonOf(m_shared / "adapters" / "tiny_expected.json");
    const QJsonObject want = expected(all, name, nf4);
    const auto batch = batchOf(all[QStringLiteral("token_ids")].toArray());
    const auto device = smallDevice();
    const fs::path model =
        nf4 ? m_shared / "adapters" / "tiny_nf4" : m_shared / "models" / "stories260K";
    PlainRunSpec spec;
    spec.config = std::move(readModelConfig(model)).value();
    spec.micro = {std::ssize(batch.front().ids), 1, 1, DType::F32};
    spec.clipNorm = 0.0;
    auto peft = readPeftConfig(adapter(name));
    QVERIFY2(peft.ok(), peft.status().message().c_str());
    spec.adapter = peft.value().settings;
    auto run = std::move(PlainRun::create(*device, spec)).value();
    auto weights = openPeftWeights(adapter(name), run->table());
    QVERIFY2(weights.ok(), weights.status().message().c_str());
    QVERIFY(installMaster(run->executor(), run->memory(), *weights.value()).ok());
    const auto base =
        std::move(openWeights(model, spec.config, run->table().frozen->model)).value();
    QVERIFY(installFrozen(run->executor(), run->table(), *base).ok());

    const RunGradients got = gradientsOf(*run, batch);

    QCOMPARE(run->table().parameters, want[QStringLiteral("trainable")].toInteger());
    const double loss = want[QStringLiteral("ce")].toDouble();
    QVERIFY2(std::abs(got.loss - loss) <= 1e-5 * loss, qPrintable(QString::number(got.loss)));
    const QJsonObject gradients = want[QStringLiteral("grad")].toObject();
    const QJsonObject norms = gradients[QStringLiteral("norms")].toObject();
    const QJsonObject first = gradients[QStringLiteral("first4")].toObject();
    int compared = 0;
    double squares = 0.0;
    for (const NamedTensor& tensor : run->table().tensors) {
        const auto values = tensorIn(got, tensor);
        const double norm = normOf(values);
        squares += norm * norm;
        const QString key = QString::fromStdString(tensor.name);
        if (!norms.contains(key))
            continue;
        ++compared;
        QVERIFY2(std::abs(norm - norms[key].toDouble()) <= 1e-3 * norms[key].toDouble(),
            tensor.name.c_str());
        const QJsonArray four = first[key].toArray();
        for (int i = 0; i < four.size(); ++i)
            QVERIFY2(std::abs(static_cast<double>(values[static_cast<std::size_t>(i)]) -
                              four[i].toDouble()) <= 1e-4 * norm,
                tensor.name.c_str());
    }
    QCOMPARE(compared, static_cast<int>(norms.size()));
    const double global = gradients[QStringLiteral("global_norm")].toDouble();
    QVERIFY(std::abs(std::sqrt(squares) - global) <= 1e-4 * global);
}

void TestPeftAdapters::aSavedFolderIsReadBack()
{
    QFETCH(const QString, name);
    if (!fs::exists(adapter(name)))
        QSKIP("no shared data (MILLRACE_SHARED)");
    const fs::path model = m_shared / "models" / "stories260K";
    const ModelConfig config = std::move(readModelConfig(model)).value();
    const PeftConfig peft = std::move(readPeftConfig(adapter(name))).value();
    const ParamTable table =
        std::move(adapterTable(buildParamTable(config), peft.settings)).value();
    const auto weights = std::move(openPeftWeights(adapter(name), table)).value();
    const fs::path saved = fs::path(m_folder.path().toStdString()) / name.toStdString();

    const Status status = savePeft(saved, peft, table, *weights, ExportType::F32);

    QVERIFY2(status.ok(), status.message().c_str());
    const PeftConfig again = std::move(readPeftConfig(saved)).value();
    QVERIFY(again.settings == peft.settings);
    QCOMPARE(again.base, peft.base);
    const auto back = std::move(openPeftWeights(saved, table)).value();
    QCOMPARE(hashOf(table, *back), hashOf(table, *weights));
    // Ollama reads alpha as an unsigned number.
    QVERIFY(has(contents(saved / "adapter_config.json"), "\"lora_alpha\": "));
    QVERIFY(!has(contents(saved / "adapter_config.json"), "\"lora_alpha\": 8.0"));
}

std::string TestPeftAdapters::whyRefused(const std::string& config)
{
    const fs::path folder = fs::path(m_folder.path().toStdString()) / "refused";
    fs::create_directories(folder);
    if (!replaceFile(folder / "adapter_config.json", config).ok() ||
        !replaceFile(folder / "adapter_model.safetensors", {}).ok())
        return {};
    auto peft = readPeftConfig(folder);
    if (!peft.ok())
        return peft.status().message();
    return adapterTable(buildParamTable(tinyConfig(false)), peft.value().settings)
        .status()
        .message();
}

void TestPeftAdapters::whatIsNotTheAdapterItSaysIsRefused_data()
{
    QTest::addColumn<QString>("config");
    QTest::addColumn<QString>("why");
    const auto row = [](const char* config, const char* why) {
        QTest::newRow(why) << QString(config) << QString(why);
    };
    row("{}", "\"target_modules\" is missing");
    row(R"({"target_modules": ["q_proj"]})", "\"peft_type\" must be \"LORA\"");
    row(R"({"peft_type": "LORA", "target_modules": []})", "names no module");
    row(R"({"peft_type": "LORA", "target_modules": ["c_attn"]})", "there are down_proj");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "r": 0})", "\"r\" is 0");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "r": 500})",
        "rank 500 does not fit");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "lora_alpha": 0})",
        "alpha 0 makes nothing");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "rank_pattern": {"q_proj": 2.5}})",
        "rank 2.5 does not fit");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "rank_pattern": {"q_proj": 1e300}})",
        "rank 1e+300 does not fit");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "bias": "all"})", "\"bias\"");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "lora_dropout": 1.0})",
        "\"lora_dropout\" must be 0 or more");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "kasa_config": {"a": 1}})",
        "this variant of LoRA");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "init_lora_weights": "pissa"})",
        "a base that was changed");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "layers_to_transform": [7]})",
        "leave no module");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "layers_to_transform": 1,
            "layers_pattern": "h"})",
        "the blocks of a model are called layers here");
    row(R"({"peft_type": "LORA", "target_modules": "(", "r": 4})", "pattern '('");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "modules_to_save": ["score"]})",
        "'score' cannot be trained whole");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"],
            "trainable_token_indices": {"lm_head": [1]}})",
        "trains rows of \"lm_head\"");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "trainable_token_indices": [1.5]})",
        "must be a list of ids");
    row(R"({"peft_type": "LORA", "target_modules": ["q_proj"],
            "trainable_token_indices": {"embed_tokens": [3, 61]}})",
        "token 61 is none of this model");
}

void TestPeftAdapters::whatIsNotTheAdapterItSaysIsRefused()
{
    QFETCH(const QString, config);
    QFETCH(const QString, why);

    const std::string message = whyRefused(config.toStdString());

    QVERIFY2(has(message, why.toStdString()), message.c_str());
}

void TestPeftAdapters::fieldsThatChangeNothingAreTaken()
{
    QCOMPARE(whyRefused(R"({"peft_type": "LORA", "target_modules": ["q_proj"], "r": 4,
        "layers_to_transform": [0, 2], "layers_pattern": ["layers"], "init_lora_weights": "eva",
        "runtime_config": {"ephemeral_gpu_offload": false}, "megatron_core": "megatron.core",
        "lora_bias": false, "eva_config": null, "qalora_group_size": 16, "task_type": null})"),
        std::string());
}

void TestPeftAdapters::aTiedEmbeddingIsOneInBothItsTensors()
{
    const ModelConfig config = tinyConfig(true);
    AdapterSettings settings;
    settings.rank = 4;
    settings.saved = {"embed_tokens", "lm_head"};
    const ParamTable table = std::move(adapterTable(buildParamTable(config), settings)).value();
    const auto weights = initialWeights(config, table, 1);
    const fs::path folder = fs::path(m_folder.path().toStdString()) / "tied";
    QVERIFY(savePeft(folder, {settings, "base"}, table, *weights, ExportType::F32).ok());
    const auto back = std::move(openPeftWeights(folder, table)).value();
    QCOMPARE(hashOf(table, *back), hashOf(table, *weights));
    QVERIFY(readPeftConfig(folder).value().settings == settings);

    ParamTable apart = peftTable(table);
    QCOMPARE(apart.tensors.size(), table.tensors.size() + 1);
    apart.tensors.back().first = apart.groups.front().elements;
    apart.groups.front().elements *= 2;
    QVERIFY(writeTensors(folder / "adapter_model.safetensors", apart,
        *initialWeights(config, apart, 1), ExportType::F32)
                .ok());
    QVERIFY(has(openPeftWeights(folder, table).status().message(),
        "lm_head.weight differs from base_model.model.model.embed_tokens.weight"));
}

void TestPeftAdapters::otherTensorsAreRefused()
{
    QVERIFY(has(readPeftConfig("/nowhere").status().message(), "has no adapter_config.json"));
    const ParamTable model = buildParamTable(tinyConfig(false));
    AdapterSettings settings;
    settings.rank = 4;
    settings.targets = {"q_proj"};
    const ParamTable table = std::move(adapterTable(model, settings)).value();
    settings.targets = {"q_proj", "v_proj"};
    const ParamTable more = std::move(adapterTable(model, settings)).value();
    settings.rank = 2;
    const ParamTable narrow = std::move(adapterTable(model, settings)).value();
    const fs::path folder = fs::path(m_folder.path().toStdString()) / "tensors";
    const auto weights = initialAdapter(more, 1);
    QVERIFY(savePeft(folder, {settings, "base"}, more, *weights, ExportType::BF16).ok());

    QVERIFY(has(openPeftWeights(folder, table).status().message(), "more tensors than expected"));
    QVERIFY(has(openPeftWeights(folder, narrow).status().message(), "has shape (4, 24), want (2,"));
    QVERIFY(savePeft(folder, {settings, "base"}, table, *initialAdapter(table, 1), ExportType::F32)
                .ok());
    QVERIFY(
        has(openPeftWeights(folder, more).status().message(), "v_proj.lora_A.weight is missing"));
}

MR_TEST(TestPeftAdapters)

} // namespace mr::test::tst_peft_adapters

#include "tst_peft_adapters.moc"
