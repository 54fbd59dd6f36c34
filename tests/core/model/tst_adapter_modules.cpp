// Settings of an adapter in the words of its folder: PEFT takes the same modules from them.

#include "core/model/adapter_modules.h"
#include "core/model/model_folder.h"
#include "support/test_room.h"

#include <QRegularExpression>
#include <QTest>

#include <algorithm>

namespace mr::test::tst_adapter_modules {

namespace {

constexpr const char* kSeeing =
    R"({"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "text_config": {"hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 12,
        "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 5,
        "max_position_embeddings": 16, "full_attention_interval": 4, "linear_num_key_heads": 1,
        "linear_num_value_heads": 1, "linear_key_head_dim": 4, "linear_value_head_dim": 4,
        "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-6}})";

// Gemma 4 with inputs of blocks: their projections are linear, and get no adapter.
constexpr const char* kFed =
    R"({"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "hidden_size": 8,
        "intermediate_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 4, "global_head_dim": 4, "vocab_size": 5,
        "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "hidden_size_per_layer_input": 4,
        "vocab_size_per_layer_input": 5})";

std::vector<std::string> namesOf(const ParamTable& model, const AdapterSettings& settings)
{
    std::vector<std::string> names;
    const auto modules = std::move(adapterModules(model, settings)).value();
    for (const AdapterModule& module : modules)
        names.push_back(module.name);
    return names;
}

AdapterSettings someSettings()
{
    AdapterSettings settings;
    settings.rank = 1;
    return settings;
}

} // namespace

class TestAdapterModules : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aTowerBesideTheTextGetsNoAdapter_data()
    {
        QTest::addColumn<QStringList>("targets");
        QTest::addColumn<QString>("pattern");
        QTest::newRow("all") << QStringList() << QString();
        QTest::newRow("ends of names")
            << QStringList{"q_proj", "mlp.up_proj", "in_proj_b"} << QString();
        QTest::newRow("an expression") << QStringList() << QStringLiteral(".*_proj");
    }

    void aTowerBesideTheTextGetsNoAdapter()
    {
        QFETCH(QStringList, targets);
        QFETCH(QString, pattern);
        const ParamTable model = buildParamTable(config(kSeeing));
        AdapterSettings settings = someSettings();
        for (const QString& target : targets)
            settings.targets.push_back(target.toStdString());
        settings.targetPattern = pattern.toStdString();
        settings.excluded = {"v_proj"};
        settings.layers = {1, 3, 10, 11};

        const AdapterSettings named = std::move(settingsForPeft(model, settings)).value();

        QVERIFY(named.targets.empty() && named.layers.empty() && named.excluded.empty());
        const std::vector<std::string> names = namesOf(model, settings);
        QVERIFY(names.size() >= 8);
        QVERIFY(namesOf(model, named) == names);
        const QRegularExpression whole(
            QRegularExpression::anchoredPattern(QString::fromStdString(named.targetPattern)));
        QVERIFY(whole.isValid());
        for (const std::string& name : namesOf(model, someSettings()))
            QCOMPARE(whole.match(QString::fromStdString(name)).hasMatch(),
                std::ranges::count(names, name) > 0);
        for (const char* tower : {"model.visual.blocks.1.attn.q_proj",
                 "model.visual.layers.1.mlp.up_proj", "model.visual.merger.linear_fc1"})
            QVERIFY2(!whole.match(tower).hasMatch(), tower);
    }

    // PEFT refuses "all-linear" beside numbers of layers, and an expression.
    void modulesOfSomeLayersAreNamed()
    {
        const ParamTable model = buildParamTable(config(tinyConfig()));
        AdapterSettings settings = someSettings();
        settings.layers = {1};
        const std::vector<std::string> names = namesOf(model, settings);

        const AdapterSettings named = std::move(settingsForPeft(model, settings)).value();
        settings.targetPattern = ".*";
        const AdapterSettings written = std::move(settingsForPeft(model, settings)).value();

        QCOMPARE(named.targets.size(), std::size_t{7});
        QVERIFY(named.layers == settings.layers && namesOf(model, named) == names);
        QVERIFY(written.layers.empty() && namesOf(model, written) == names);
    }

    void projectionsOfInputsGetNoAdapter()
    {
        const ParamTable model = buildParamTable(config(kFed));
        AdapterSettings settings = someSettings();
        const std::vector<std::string> names = namesOf(model, settings);
        QCOMPARE(names.size(), std::size_t{14});

        const AdapterSettings named = std::move(settingsForPeft(model, settings)).value();
        settings.targetPattern = ".*(gate|proj).*";
        const AdapterSettings written = std::move(settingsForPeft(model, settings)).value();

        QCOMPARE(named.targets.size(), std::size_t{7});
        QVERIFY(namesOf(model, named) == names && namesOf(model, written) == names);
        const QRegularExpression whole(
            QRegularExpression::anchoredPattern(QString::fromStdString(written.targetPattern)));
        for (const char* other : {"model.per_layer_model_projection",
                 "model.layers.0.per_layer_input_gate", "model.layers.1.per_layer_projection"}) {
            QVERIFY2(!whole.match(other).hasMatch(), other);
            for (const std::string& target : named.targets)
                QVERIFY2(!isTarget(other, target), other);
        }
    }

    void otherSettingsStayAsTheyAre()
    {
        const ParamTable model = buildParamTable(config(tinyConfig()));
        AdapterSettings settings = someSettings();
        QVERIFY(std::move(settingsForPeft(model, settings)).value() == settings);
        settings.targets = {"q_proj", "v_proj"};
        settings.layers = {0};
        settings.excluded = {"mlp.up_proj"};
        QVERIFY(std::move(settingsForPeft(model, settings)).value() == settings);
    }
};

MR_TEST(TestAdapterModules)

} // namespace mr::test::tst_adapter_modules

#include "tst_adapter_modules.moc"
