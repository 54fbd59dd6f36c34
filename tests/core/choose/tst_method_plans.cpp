// Full fine-tuning, some layers and an adapter beside each other, before a run starts.

#include "support/test_room.h"

#include <millrace/planner.h>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

namespace mr::test::tst_method_plans {

namespace {

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "hidden_act": "silu", "torch_dtype": "bfloat16"})";

QStringList methodsOf(const std::vector<PlanReport>& reports)
{
    QStringList words;
    for (const PlanReport& report : reports)
        words << QString::fromStdString(report.method + " " + report.precision);
    return words;
}

} // namespace

class TestMethodPlans : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        QVERIFY(m_folder->isValid());
        qputenv("XDG_DATA_HOME", m_folder->path().toUtf8());
        QFile config(m_folder->filePath(QStringLiteral("config.json")));
        QVERIFY(config.open(QIODevice::WriteOnly));
        config.write(kConfig);
    }

    void anAdapterStandsBesideTheWholeModel()
    {
        const std::vector<PlanReport> plans = planAllMethods(spec()).value();

        QCOMPARE(
            methodsOf(plans), QStringList({"full bf16", "blocks bf16", "lora bf16", "qlora bf16"}));
        QCOMPARE(plans[0].trainedParameters, plans[0].parameters);
        QCOMPARE(plans[2].parameters, plans[0].parameters);
        QVERIFY(plans[2].trainedParameters < plans[2].parameters / 10);
        QVERIFY(plans[2].tiers[0].totalBytes < plans[0].tiers[0].totalBytes / 2);
        QCOMPARE(plans[3].trainedParameters, plans[2].trainedParameters);
        QVERIFY(plans[3].tiers[0].totalBytes < plans[2].tiers[0].totalBytes);
        QVERIFY(plans[0].fits && plans[2].fits);
        QVERIFY2(plans[1].fits, plans[1].limit.c_str());
        QVERIFY(plans[1].trainedParameters < plans[1].parameters); // not embedding and head
        QVERIFY(plans[1].tiers[0].totalBytes < plans[0].tiers[0].totalBytes);
    }

    void policiesThatDoNotTrainAnAdapterSaySoBesideTheOthers()
    {
        RunSpec asked = spec();
        asked.method = "lora";
        const std::vector<PlanReport> plans = planAllPolicies(asked).value();

        QStringList planned;
        for (const PlanReport& plan : plans) {
            if (plan.tiers.empty())
                QVERIFY2(plan.limit.find("does not train an adapter") != std::string::npos,
                    plan.limit.c_str());
            else
                planned << QString::fromStdString(plan.policy);
        }
        planned.sort();
        QCOMPARE(planned, QStringList({"resident", "ssd-vertical", "streamed"}));
        QVERIFY(plans.size() > 3);
    }

    void optionsOfAdaptersCountForTheAdapterAlone()
    {
        RunSpec asked = spec();
        const auto trained = [&] { return planAllMethods(asked).value().back().trainedParameters; };
        const std::int64_t usual = trained();

        asked.rank = 32; // twice the usual; a run that trains the whole model would refuse it
        QCOMPARE(trained(), 2 * usual);
        asked.method = "lora";
        asked.trainLayers = "0-2"; // half of the blocks
        QCOMPARE(methodsOf(planAllMethods(asked).value()),
            QStringList({"full bf16", "blocks bf16", "lora bf16", "qlora bf16"}));
        QCOMPARE(trained(), usual);
    }

    void layersThatAreAskedForHaveALine()
    {
        RunSpec asked = spec();
        asked.trainLayers = "4-5,head";

        const std::vector<PlanReport> plans = planAllMethods(asked).value();

        QCOMPARE(methodsOf(plans),
            QStringList({"full bf16", "blocks bf16", "layers bf16", "lora bf16", "qlora bf16"}));
        QCOMPARE(plans[0].trainedParameters, plans[0].parameters);
        QVERIFY(plans[2].trainedParameters < plans[0].parameters / 2);
        QVERIFY2(plans[3].fits, plans[3].limit.c_str()); // "head" is no layer of an adapter
    }

    void aPrecisionThatIsAskedForStandsBesideBf16()
    {
        RunSpec asked = spec();
        asked.precision = PrecisionChoice::F32;

        QCOMPARE(methodsOf(planAllMethods(asked).value()),
            QStringList({"full fp32", "full bf16", "blocks fp32", "blocks bf16", "lora fp32",
                "lora bf16", "qlora fp32", "qlora bf16"}));
        asked.precision = PrecisionChoice::Auto; // the machine's, and bf16
        const QStringList all = methodsOf(planAllMethods(asked).value());
        QVERIFY(
            all.contains(QStringLiteral("full bf16")) && all.contains(QStringLiteral("lora bf16")));
    }

    void aMethodThatCannotBePlannedSaysWhy()
    {
        RunSpec asked = spec();
        asked.rank = 300; // wider than the matrices

        const std::vector<PlanReport> plans = planAllMethods(asked).value();

        QCOMPARE(
            methodsOf(plans), QStringList({"full bf16", "blocks bf16", "lora bf16", "qlora bf16"}));
        QVERIFY(plans[0].fits);
        QVERIFY(!plans[2].fits);
        QVERIFY2(plans[2].limit.find("rank") != std::string::npos, plans[2].limit.c_str());
        asked = spec();
        asked.method = "galore"; // is none of them, and is not taken for one
        const std::vector<PlanReport> other = planAllMethods(asked).value();
        QCOMPARE(methodsOf(other).back(), QStringLiteral("galore bf16"));
        QVERIFY(other.back().limit.find("not built yet") != std::string::npos);
    }

    void withoutAModelThereIsNothingToCompare()
    {
        RunSpec asked = spec();
        asked.modelDir = m_folder->filePath(QStringLiteral("elsewhere")).toStdString();

        const auto plans = planAllMethods(asked);

        QVERIFY(!plans.ok());
        QVERIFY2(plans.status().message().find("elsewhere") != std::string::npos,
            plans.status().message().c_str());
    }

    void aReportSaysItsMethodInTheRecord()
    {
        const PlanReport plan = planAllMethods(spec()).value().back();

        QCOMPARE(planReportFromJson(toJson(plan)).value().method, std::string("qlora"));
        QCOMPARE(planReportFromJson("{}").value().method, std::string("full")); // an old record
    }

private:
    RunSpec spec() const
    {
        RunSpec spec;
        spec.modelDir = m_folder->path().toStdString();
        spec.data.push_back({"data.txt", DataFormat::Text, {}});
        spec.device = DeviceChoice::Cpu;
        spec.precision = PrecisionChoice::BF16;
        spec.seqLen = 64;
        spec.steps = 240; // two rounds of six blocks
        return spec;
    }

    std::unique_ptr<QTemporaryDir> m_folder;
};

MR_TEST(TestMethodPlans)

} // namespace mr::test::tst_method_plans

#include "tst_method_plans.moc"
