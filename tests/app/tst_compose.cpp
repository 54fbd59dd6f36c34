// Changes that a card makes to a spec. The card is that of a fake plugin: 8 GiB, 6 GiB of them
// free, compute capability 7.5, so without bf16.

#include "app/compose.h"
#include "core/choose/measure_rates.h"
#include "core/choose/rate_cache.h"
#include "support/test_room.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

namespace mr::test::tst_compose {

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

mr::RunSpec specOn(mr::DeviceChoice device)
{
    mr::RunSpec spec;
    spec.device = device;
    return spec;
}

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 32,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "hidden_act": "silu", "torch_dtype": "float32"})";

// A run of the model in `folder`, which is also where rates are kept.
mr::RunSpec smallModel(const QTemporaryDir& folder)
{
    qputenv("XDG_DATA_HOME", folder.path().toUtf8());
    QFile config(folder.filePath("config.json"));
    if (!config.open(QIODevice::WriteOnly))
        qFatal("no folder for a model");
    config.write(kConfig);
    mr::RunSpec spec = specOn(mr::DeviceChoice::Cpu);
    spec.modelDir = folder.path().toStdString();
    spec.threads = 1;
    spec.seqLen = 16;
    return spec;
}

std::string rateKey(const mr::RunSpec& spec)
{
    auto resolved = mr::app::resolveForMachine(spec, 0);
    auto config = mr::readModelConfig(spec.scratchConfig);
    if (!resolved.ok() || !config.ok())
        return {};
    auto subject = mr::rateSubject(resolved.value(), config.value(), mr::inspectMachine());
    return subject.ok() ? subject.value().key : std::string();
}

} // namespace

class TestCompose : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        qputenv("MILLRACE_CUDA_PLUGIN", MR_FAKE_PLUGINS "/libfake_plugin_good.so");
    }

    void autoTakesTheCardAndWhatItHas()
    {
        auto spec = mr::app::completeForMachine(specOn(mr::DeviceChoice::Auto));
        QVERIFY2(spec.ok(), spec.status().message().c_str());
        QVERIFY(spec.value().device == mr::DeviceChoice::Cuda);
        QCOMPARE(spec.value().deviceMemoryBytes, 6 * kGiB - 3 * kGiB / 4);
        QVERIFY(spec.value().precision == mr::PrecisionChoice::F32);
    }

    void whatTheUserChoseStays()
    {
        mr::RunSpec asked = specOn(mr::DeviceChoice::Cuda);
        asked.deviceMemoryBytes = kGiB;
        asked.precision = mr::PrecisionChoice::F32;
        auto spec = mr::app::completeForMachine(asked);
        QVERIFY(spec.ok());
        QCOMPARE(spec.value().deviceMemoryBytes, kGiB);
        QVERIFY(spec.value().precision == mr::PrecisionChoice::F32);

        auto onCpu = mr::app::completeForMachine(specOn(mr::DeviceChoice::Cpu));
        QVERIFY(onCpu.ok());
        QVERIFY(onCpu.value().device == mr::DeviceChoice::Cpu);
        QCOMPARE(onCpu.value().deviceMemoryBytes, std::uint64_t{0});
    }

    void whatOnlyTheCpuDeviceHasMeansTheCpuDevice()
    {
        mr::RunSpec asked = specOn(mr::DeviceChoice::Auto);
        asked.linkBytesPerSecond = 1e9;
        auto spec = mr::app::completeForMachine(asked);
        QVERIFY(spec.ok());
        QVERIFY(spec.value().device != mr::DeviceChoice::Cuda);
    }

    void bf16OnACardWithoutItIsRefused()
    {
        mr::RunSpec asked = specOn(mr::DeviceChoice::Cuda);
        asked.precision = mr::PrecisionChoice::BF16;
        const auto spec = mr::app::completeForMachine(asked);
        QVERIFY(!spec.ok());
        QVERIFY(spec.status().kind() == mr::ErrorKind::InvalidArgument);
        QVERIFY(spec.status().message().find("Invented GPU (compute capability 7.5)") !=
                std::string::npos);
    }

    void fp8OnACardWithoutItIsRefused()
    {
        mr::RunSpec asked = specOn(mr::DeviceChoice::Cuda);
        asked.precision = mr::PrecisionChoice::Fp8;
        const auto spec = mr::app::completeForMachine(asked);
        QVERIFY(spec.status().kind() == mr::ErrorKind::InvalidArgument);
        QVERIFY(spec.status().message().find("Invented GPU (compute capability 7.5) has no FP8 "
                                             "products, which come with 8.9") != std::string::npos);
        asked.device = mr::DeviceChoice::Cpu;
        QVERIFY(mr::app::completeForMachine(asked).value().precision == mr::PrecisionChoice::Fp8);
        QVERIFY(mr::app::inferenceType("fp8").status().message().find("for training only") !=
                std::string::npos);
        QVERIFY(mr::app::inferenceType("bf16").value() == mr::DType::BF16);
    }

    void inferenceTakesTheCardIfItHasTheRoom()
    {
        auto onCard = mr::app::makeInferenceDevice({mr::DeviceChoice::Auto, 4096});
        QVERIFY(onCard.ok());
        QCOMPARE(onCard.value()->info().memoryBytes, std::size_t{4096});
        QVERIFY(mr::app::makeInferenceDevice({mr::DeviceChoice::Auto, 7 * kGiB}).ok());
        const auto bf16 =
            mr::app::makeInferenceDevice({mr::DeviceChoice::Cuda, 4096, 0, mr::DType::BF16});
        QVERIFY(bf16.status().message().find("no bf16 arithmetic") != std::string::npos);
    }

    void methodsArePlannedWithOneMeasurement()
    {
        QTemporaryDir folder;
        const QByteArray before = qgetenv("XDG_DATA_HOME");
        mr::RunSpec spec = smallModel(folder);
        spec.precision = mr::PrecisionChoice::F32;

        const auto plans = mr::app::planMethodsForMachine(spec);

        QVERIFY2(plans.ok(), plans.status().message().c_str());
        const std::vector<mr::PlanReport> list = mr::Result(plans).value();
        for (const mr::PlanReport& plan : list) {
            QVERIFY2(plan.fits, plan.limit.c_str());
            QVERIFY(plan.precision != "fp32" || plan.predictedStepMs > 0.0);
        }
        qputenv("XDG_DATA_HOME", before);
    }

    void methodsInBf16AreRefusedOnACardWithoutIt()
    {
        QTemporaryDir folder;
        const QByteArray before = qgetenv("XDG_DATA_HOME");
        mr::RunSpec spec = smallModel(folder);
        spec.device = mr::DeviceChoice::Cuda;

        const auto plans = mr::app::planMethodsForMachine(spec).value();

        QCOMPARE(plans.size(), std::size_t{8}); // fp32, which the card has, and bf16
        for (const mr::PlanReport& plan : plans) {
            QCOMPARE(plan.fits, plan.precision == "fp32");
            QVERIFY(plan.fits || plan.limit.find("no bf16 arithmetic") != std::string::npos);
        }
        qputenv("XDG_DATA_HOME", before);
    }

    void ratesAreMeasuredOnceAndAgainWhenThatIsAsked()
    {
        QTemporaryDir folder;
        const QByteArray before = qgetenv("XDG_DATA_HOME");
        mr::RunSpec spec = smallModel(folder);
        spec.scratchConfig = folder.filePath("config.json").toStdString();
        spec.modelDir.clear();

        const auto first = mr::app::planForMachine(spec);
        QVERIFY2(first.ok(), first.status().message().c_str());
        const auto path = mr::RateCache::defaultPath();
        const std::string key = rateKey(spec);
        mr::RateCache book = mr::RateCache::load(path);
        QVERIFY(book.find(key) != nullptr);
        mr::Feedback busy = *book.find(key);
        busy.deviceFlopsPerSecond = 1.0;
        book.put(key, busy);
        QVERIFY(book.save(path).ok());

        QVERIFY(mr::app::planForMachine(spec).ok());
        const mr::RateCache kept = mr::RateCache::load(path);
        QCOMPARE(kept.find(key)->deviceFlopsPerSecond, 1.0);
        const mr::Status measured = mr::app::measureForMachine(spec);

        QVERIFY2(measured.ok(), measured.message().c_str());
        const mr::RateCache again = mr::RateCache::load(path);
        QVERIFY(again.find(key)->deviceFlopsPerSecond > 1e3);
        qputenv("XDG_DATA_HOME", before);
    }
};

MR_TEST_WITH_APP(TestCompose)

} // namespace mr::test::tst_compose

#include "tst_compose.moc"
