// Models that are published in FP8: read as the numbers their codes stand for.

#include "core/model/config_texts.h"
#include "core/model/fp8_tensor.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace mr::test::tst_fp8_tensor {

namespace {

namespace fs = std::filesystem;

std::string floats(const std::vector<float>& values)
{
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// A matrix of 200 x 130, whose codes count up; 0x7F and 0xFF are no numbers.
std::string codes()
{
    std::string bytes;
    for (int i = 0; i < 200 * 130; ++i)
        bytes.push_back(static_cast<char>(i % 127));
    return bytes;
}

// E4M3 by its definition: 4 bits of exponent with bias 7, 3 of mantissa.
double valueOf(int code)
{
    const int exponent = (code >> 3) & 15;
    const int mantissa = code & 7;
    return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
}

// A Llama of one layer whose q is in FP8.
std::map<std::string, RawTensor> llama(const ModelConfig& config)
{
    std::map<std::string, RawTensor> all;
    for (const NamedTensor& tensor : buildParamTable(config).tensors)
        all[tensor.name] = {
            "BF16", tensor.shape, std::string(static_cast<std::size_t>(2 * tensor.count()), '\0')};
    RawTensor& q = all["model.layers.0.self_attn.q_proj.weight"];
    q = {"F8_E4M3", q.shape, std::string(q.bytes.size() / 2, '\x38')}; // 1
    all["model.layers.0.self_attn.q_proj.weight_scale_inv"] = {"F32", {}, floats({0.5F})};
    all["model.layers.0.self_attn.q_proj.activation_scale"] = {"F32", {}, floats({3.0F})};
    return all;
}

constexpr const char* kFp8 =
    R"("quantization_config": {"quant_method": "fp8", "activation_scheme": "static"})";

} // namespace

class TestFp8Tensor : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void factorsAreOfTheWholeOrOfBlocks()
    {
        for (const bool inBlocks : {false, true}) {
            QTemporaryDir dir;
            const fs::path path = fs::path(dir.path().toStdString()) / "model.safetensors";
            const std::vector<float> factors =
                inBlocks ? std::vector<float>{1.0F, 2.0F, 0.25F, 3.0F} : std::vector<float>{0.5F};
            const std::vector<std::int64_t> shape =
                inBlocks ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{};
            put(path, safetensors({{"w.weight", {"F8_E4M3", {200, 130}, codes()}},
                          {"w.weight_scale_inv", {"F32", shape, floats(factors)}}}));
            const auto reader = std::move(SafetensorsReader::open(path)).value();
            Fp8Tensor tensor =
                std::move(Fp8Tensor::open("w.weight", {200, 130}, reader, reader)).value();
            std::vector<float> values(300);
            for (const std::int64_t first : {0, 127 * 130 + 100, 199 * 130 - 170}) {
                QVERIFY(tensor.read(first, values).ok());
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const std::int64_t at = first + static_cast<std::int64_t>(i);
                    const std::int64_t block = at / 130 / 128 * 2 + at % 130 / 128;
                    const double factor = static_cast<double>(
                        factors[inBlocks ? static_cast<std::size_t>(block) : 0]);
                    QCOMPARE(static_cast<double>(values[i]),
                        valueOf(static_cast<int>(at % 127)) * factor);
                }
            }
        }
    }

    void otherShapesOfFactorsAndNumbersThatAreNoneAreRefused()
    {
        QTemporaryDir dir;
        const fs::path path = fs::path(dir.path().toStdString()) / "model.safetensors";
        const auto opened = [&](const std::vector<std::int64_t>& shape, float factor,
                                std::size_t count) {
            put(path, safetensors({{"w.weight", {"F8_E4M3", {200, 130}, codes()}},
                          {"w.weight_scale_inv",
                              {"F32", shape, floats(std::vector<float>(count, factor))}}}));
            const auto reader = std::move(SafetensorsReader::open(path)).value();
            return Fp8Tensor::open("w.weight", {200, 130}, reader, reader).status().message();
        };
        QVERIFY(has(opened({2, 3}, 1.0F, 6), "128 x 128"));
        QVERIFY(has(opened({2, 2}, INFINITY, 4), "not finite"));
        QCOMPARE(opened({2, 2}, 1.0F, 4), std::string());
    }

    void twoCodesAreNoNumbers()
    {
        QTemporaryDir dir;
        const fs::path path = fs::path(dir.path().toStdString()) / "model.safetensors";
        put(path, safetensors({{"w.weight", {"F8_E4M3", {1, 4}, "\x7f\xff\x7e\xfe"}},
                      {"w.weight_scale_inv", {"F32", {}, floats({2.0F})}}}));
        const auto reader = std::move(SafetensorsReader::open(path)).value();
        Fp8Tensor tensor = std::move(Fp8Tensor::open("w.weight", {1, 4}, reader, reader)).value();
        std::vector<float> values(4);
        QVERIFY(tensor.read(0, values).ok());
        QVERIFY(std::isnan(values[0]) && std::isnan(values[1]));
        QVERIFY(values[2] == 896.0F && values[3] == -896.0F);
    }

    void anEditionInFp8IsReadAndSavedAsNumbers()
    {
        QTemporaryDir dir;
        const fs::path path = dir.path().toStdString();
        const std::string text = added(kFp8);
        put(path / "config.json", text);
        const ModelConfig config = std::move(readModelConfig(path)).value();
        QVERIFY(config.isFp8 && !config.isNf4 && config.notes.size() == 1);
        put(path / "model.safetensors", safetensors(llama(config)));
        const ParamTable table = buildParamTable(config);
        const auto weights = std::move(openWeights(path, config, table)).value();
        QVERIFY(saveModel(path / "out", config, table, *weights, ExportType::BF16, {}).ok());

        const ModelConfig saved = std::move(readModelConfig(path / "out")).value();

        QVERIFY(!saved.isFp8);
        const auto out = std::move(SafetensorsReader::open(path / "out/model.safetensors")).value();
        QCOMPARE(out.entries().size(), table.tensors.size());
        std::vector<float> q(8);
        QVERIFY(out.readFloats("model.layers.0.self_attn.q_proj.weight", 5, q).ok());
        QVERIFY(std::ranges::all_of(q, [](float value) { return value == 0.5F; }));
    }

    void codesWithoutFactorsAreNoWeights()
    {
        QTemporaryDir dir;
        const fs::path path = dir.path().toStdString();
        put(path / "config.json", added(kFp8));
        const ModelConfig config = std::move(readModelConfig(path)).value();
        auto tensors = llama(config);
        tensors.erase("model.layers.0.self_attn.q_proj.weight_scale_inv");
        put(path / "model.safetensors", safetensors(tensors));
        const std::string why =
            findWeights(path, config, buildParamTable(config)).status().message();
        QVERIFY(has(why, "q_proj.weight is F8_E4M3"));
        QVERIFY(has(refusal(added(R"("quantization_config": {"quant_method": "fp8",
            "weight_block_size": [64, 64]})")),
            "128 x 128"));
    }
};

MR_TEST(TestFp8Tensor)

} // namespace mr::test::tst_fp8_tensor

#include "tst_fp8_tensor.moc"
