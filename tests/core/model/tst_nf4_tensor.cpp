// Matrices in NF4: bytes and numbers of bitsandbytes, files that lie, and what may be done with
// such a model.

#include "core/model/nf4_tensor.h"
#include "core/model/weights.h"
#include "support/shared_data.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace mr::test::tst_nf4_tensor {

namespace fs = std::filesystem;

namespace {

std::vector<std::byte> bytesOf(const std::string& hex)
{
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

template <typename T>
std::vector<std::byte> raw(const std::vector<T>& values)
{
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

SafetensorSource source(const std::string& name, const char* dtype, std::vector<std::byte> bytes)
{
    SafetensorSource out;
    out.name = name;
    out.dtype = dtype;
    out.shape = {static_cast<std::int64_t>(bytes.size() / (dtype[0] == 'F' ? 4 : 1))};
    out.bytes = bytes.size();
    out.fill = [bytes](std::uint64_t offset, std::span<std::byte> to) {
        std::memcpy(to.data(), bytes.data() + offset, to.size());
        return Status();
    };
    return out;
}

std::vector<std::byte> textBytes(const nlohmann::json& json)
{
    const std::string text = json.dump();
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

} // namespace

class TestNf4Tensor : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        std::ifstream file(sharedData() / "adapters" / "nf4.json");
        if (!file)
            QSKIP("no shared data (MILLRACE_SHARED)");
        m_all = nlohmann::json::parse(file);
        const nlohmann::json& small = m_all["small"];
        const nlohmann::json& nested = small["double_quant"];
        m_plain = {source("w", "U8", bytesOf(small["packed_hex"])),
            source("w.absmax", "F32", raw(small["absmax_f32"].get<std::vector<float>>())),
            source("w.quant_map", "F32", raw(m_all["nf4_code"].get<std::vector<float>>())),
            source("w.quant_state.bitsandbytes__nf4", "U8", textBytes(state(false)))};
        m_double = m_plain;
        m_double[1] =
            source("w.absmax", "U8", raw(nested["absmax_u8"].get<std::vector<std::uint8_t>>()));
        m_double[3] = source("w.quant_state.bitsandbytes__nf4", "U8", textBytes(state(true)));
        m_double.push_back(source(
            "w.nested_absmax", "F32", raw(nested["nested_absmax"].get<std::vector<float>>())));
        m_double.push_back(source(
            "w.nested_quant_map", "F32", raw(m_all["dynamic_map_f32"].get<std::vector<float>>())));
    }

    void numbersAreThoseOfBitsandbytes()
    {
        const nlohmann::json& small = m_all["small"];
        QCOMPARE(bitsOf(m_plain), small["dequant_bf16_le_hex"].get<std::string>());
        QCOMPARE(bitsOf(m_double), small["double_quant"]["dequant_bf16_le_hex"].get<std::string>());
        nlohmann::json wide = state(false);
        wide["dtype"] = "float32";
        auto plain = m_plain;
        plain[3] = source("w.quant_state.bitsandbytes__nf4", "U8", textBytes(wide));
        const auto values = valuesOf(plain, 0, 256);
        const auto bytes = raw(values);
        QCOMPARE(bytes, bytesOf(small["dequant_f32_le_hex"]));
    }

    void piecesAreThoseOfTheWhole()
    {
        const auto whole = valuesOf(m_double, 0, 256);
        for (const std::int64_t first : {1, 63, 64, 130})
            for (const std::int64_t count : {1, 2, 65}) {
                const auto piece = valuesOf(m_double, first, count);
                QVERIFY(std::equal(piece.begin(), piece.end(), whole.begin() + first));
            }
    }

    void filesThatLieAreRefused_data()
    {
        QTest::addColumn<int>("part");
        QTest::addColumn<QString>("state");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, int part, const char* state, const char* says) {
            QTest::newRow(name) << part << QString(state) << QString(says);
        };
        row("a matrix that is cut", 0, "", "256 elements of 4 bits are expected");
        row("too few scales", 1, "", "absmax is missing, or is not U8 of 4 elements");
        row("no code book", 2, "", "quant_map is missing");
        row("fp4", 3, "{\"quant_type\": \"fp4\"}", "nf4 is read");
        row("blocks of another size", 3, "{\"blocksize\": 16}", "blocksize");
        row("another shape", 3, "{\"shape\": [4, 63]}", "is not that of config.json");
        row("another type", 3, "{\"dtype\": \"int8\"}", "dtype");
        row("no scales of scales", 4, "", "nested_absmax is missing");
    }

    void filesThatLieAreRefused()
    {
        QFETCH(int, part);
        QFETCH(QString, state);
        QFETCH(QString, says);
        auto tensors = m_double;
        if (state.isEmpty()) {
            auto& broken = tensors[static_cast<std::size_t>(part)];
            broken.bytes -= 4;
            broken.shape = {
                static_cast<std::int64_t>(broken.bytes / (broken.dtype == "F32" ? 4 : 1))};
        } else {
            nlohmann::json changed = this->state(true);
            changed.update(nlohmann::json::parse(state.toStdString()));
            tensors[3] = source("w.quant_state.bitsandbytes__nf4", "U8", textBytes(changed));
        }

        const Status status = read(tensors, 0, 4).status();

        QVERIFY2(status.message().find(says.toStdString()) != std::string::npos,
            status.message().c_str());
        QVERIFY(status.message().find("model.safetensors") != std::string::npos);
    }

    void aCheckpointIsAModelWithoutItsQuantisation()
    {
        const fs::path folder = sharedData() / "adapters" / "tiny_nf4";
        const auto config = readModelConfig(folder);
        QVERIFY2(config.ok(), config.status().message().c_str());
        const ModelConfig model = Result(config).value();
        QVERIFY(model.isNf4);
        const ParamTable table = buildParamTable(model);
        const auto files = findWeights(folder, model, table);
        QVERIFY2(files.ok(), files.status().message().c_str());
        QVERIFY(std::ranges::count(Result(files).value().dtypes, "NF4") == 1);
        const auto weights = std::move(openWeights(folder, model, table)).value();
        QTemporaryDir out;
        const fs::path saved = fs::path(out.path().toStdString()) / "saved";

        QVERIFY(saveModel(saved, model, table, *weights, ExportType::BF16, {}).ok());

        const ModelConfig plain = readModelConfig(saved).value();
        QVERIFY(!plain.isNf4);
        const auto again = std::move(openWeights(saved, plain, table)).value();
        QCOMPARE(weightsHash(table, *again).value(), weightsHash(table, *weights).value());
    }

private:
    nlohmann::json state(bool isNested) const
    {
        nlohmann::json json = {
            {"quant_type", "nf4"}, {"blocksize", 64}, {"dtype", "bfloat16"}, {"shape", {4, 64}}};
        if (isNested)
            json.update({{"nested_blocksize", 256}, {"nested_dtype", "float32"},
                {"nested_offset", m_all["small"]["double_quant"]["nested_offset"]}});
        return json;
    }

    Result<std::vector<float>> read(
        const std::vector<SafetensorSource>& tensors, std::int64_t first, std::int64_t count)
    {
        const fs::path file = fs::path(m_folder.path().toStdString()) / "model.safetensors";
        MR_TRY(writeSafetensors(file, tensors));
        MR_ASSIGN(const SafetensorsReader reader, SafetensorsReader::open(file));
        MR_ASSIGN(Nf4Tensor tensor, Nf4Tensor::open("w", {4, 64}, [&](const std::string& name) {
            return reader.entries().contains(name) ? &reader : nullptr;
        }));
        std::vector<float> values(static_cast<std::size_t>(count));
        MR_TRY(tensor.read(first, values));
        return values;
    }

    std::vector<float> valuesOf(
        const std::vector<SafetensorSource>& tensors, std::int64_t first, std::int64_t count)
    {
        auto values = read(tensors, first, count);
        if (!values.ok())
            qFatal("%s", values.status().message().c_str());
        return std::move(values).value();
    }

    std::string bitsOf(const std::vector<SafetensorSource>& tensors)
    {
        std::string hex;
        for (const float value : valuesOf(tensors, 0, 256)) {
            const auto high = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
            hex += QByteArray(reinterpret_cast<const char*>(&high), 2).toHex().toStdString();
        }
        return hex;
    }

    QTemporaryDir m_folder;
    nlohmann::json m_all;
    std::vector<SafetensorSource> m_plain;
    std::vector<SafetensorSource> m_double;
};

MR_TEST(TestNf4Tensor)

} // namespace mr::test::tst_nf4_tensor

#include "tst_nf4_tensor.moc"
