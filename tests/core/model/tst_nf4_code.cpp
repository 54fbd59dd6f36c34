// NF4 as we make it: bytes of bitsandbytes, blocks that are not whole, and checkpoints whose codes
// are taken as they are.

#include "core/model/nf4_code.h"
#include "core/model/packed_group.h"
#include "core/model/weights.h"
#include "support/shared_data.h"
#include "support/test_room.h"

#include <QtTest>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

namespace mr::test::tst_nf4_code {

namespace {

std::vector<std::byte> packed(std::span<const float> values, std::size_t piece)
{
    Nf4Packer packer;
    packer.begin(std::ssize(values));
    for (std::size_t first = 0; first < values.size(); first += piece)
        packer.add(values.subspan(first, std::min(piece, values.size() - first)));
    const auto bytes = packer.finish();
    return {bytes.begin(), bytes.end()};
}

std::vector<float> bfloats(const QByteArray& bytes)
{
    std::vector<float> values;
    for (qsizetype i = 0; i < bytes.size(); i += 2) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, bytes.data() + i, sizeof bits);
        values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U));
    }
    return values;
}

QByteArray part(const std::vector<std::byte>& bytes, std::size_t at, std::size_t count)
{
    return QByteArray(
        reinterpret_cast<const char*>(bytes.data() + at), static_cast<qsizetype>(count));
}

float number(const std::vector<std::byte>& bytes, std::size_t i)
{
    float value = 0.0F;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

std::vector<float> unpacked(const std::vector<std::byte>& bytes, std::int64_t elements)
{
    std::vector<float> values(static_cast<std::size_t>(elements));
    unpackNf4(bytes, elements, 0, values);
    return values;
}

std::vector<float> randomValues(std::size_t count)
{
    std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values)
        value = normal(engine);
    return values;
}

} // namespace

class TestNf4Code : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void tablesAreThoseOfBitsandbytes()
    {
        const nlohmann::json all = vectors();
        if (all.is_null())
            QSKIP("no shared data (MILLRACE_SHARED)");
        for (std::size_t i = 0; i < kNf4Book; ++i)
            QCOMPARE(nf4Book()[i], all["nf4_code"][i].get<float>());
        for (std::size_t i = 0; i < kNf4Map; ++i)
            QCOMPARE(nf4Map()[i], all["dynamic_map_f32"][i].get<float>());
    }

    void bytesAreThoseOfBitsandbytes_data()
    {
        QTest::addColumn<bool>("isSmall");
        QTest::newRow("4 blocks") << true;
        QTest::newRow("320 blocks in two nested ones") << false;
    }

    void bytesAreThoseOfBitsandbytes()
    {
        QFETCH(bool, isSmall);
        const nlohmann::json all = vectors();
        if (all.is_null())
            QSKIP("no shared data (MILLRACE_SHARED)");
        const nlohmann::json& one = all[isSmall ? "small" : "big"];
        const nlohmann::json& nested = isSmall ? one["double_quant"] : one;
        const auto text = [&](const char* key) {
            return QByteArray::fromStdString(one[key].get<std::string>());
        };
        const auto values =
            bfloats(isSmall ? QByteArray::fromHex(text("source_bf16_le_hex"))
                            : QByteArray::fromBase64(text("source_bf16_le_base64")));

        const auto bytes = packed(values, values.size());

        const Nf4Layout layout = nf4Layout(std::ssize(values));
        const QByteArray codes = part(bytes, layout.codesAt, values.size() / 2);
        if (isSmall)
            QCOMPARE(codes.toHex(), text("packed_hex"));
        else
            QCOMPARE(QCryptographicHash::hash(codes, QCryptographicHash::Sha256).toHex(),
                text("packed_sha256"));
        QCOMPARE(number(bytes, kNf4Fixed - 1), nested["nested_offset"].get<float>());
        for (std::size_t i = 0; i < nested["nested_absmax"].size(); ++i)
            QCOMPARE(number(bytes, kNf4Fixed + i), nested["nested_absmax"][i].get<float>());
        const char* const key = isSmall ? "absmax_u8" : "absmax_u8_bitsandbytes_cpu";
        for (std::size_t i = 0; i < nested[key].size(); ++i)
            QCOMPARE(std::to_integer<int>(bytes[layout.absmaxAt + i]), nested[key][i].get<int>());
        if (!isSmall)
            return;
        const auto want =
            bfloats(QByteArray::fromHex(QByteArray::fromStdString(nested["dequant_bf16_le_hex"])));
        QVERIFY(unpacked(bytes, std::ssize(values)) == want);
    }

    // Rows may end within a block, and so may pieces.
    void blocksThatAreNotWholeAreKept()
    {
        for (const std::size_t count : {1U, 63U, 65U, 288U, 12'300U}) {
            const auto values = randomValues(count);
            const auto bytes = packed(values, count);
            for (const std::size_t piece : {1U, 7U, 64U, 100U})
                QVERIFY(packed(values, piece) == bytes);
            const auto got = unpacked(bytes, static_cast<std::int64_t>(count));
            double error = 0.0;
            double size = 0.0;
            for (std::size_t i = 0; i < count; ++i) {
                error += std::pow(static_cast<double>(got[i] - values[i]), 2);
                size += std::pow(static_cast<double>(values[i]), 2);
            }
            QVERIFY2(std::sqrt(error / size) < 0.12, std::to_string(count).c_str());
            for (const std::size_t first : {std::size_t{0}, count / 2, count - 1}) {
                std::vector<float> rest(count - first);
                unpackNf4(bytes, static_cast<std::int64_t>(count), static_cast<std::int64_t>(first),
                    rest);
                QVERIFY(
                    std::equal(rest.begin(), rest.end(), got.begin() + static_cast<long>(first)));
            }
        }
    }

    void zerosStayZeros()
    {
        auto values = randomValues(192);
        std::fill(values.begin() + 64, values.begin() + 128, 0.0F);
        const auto got = unpacked(packed(values, 192), 192);
        QVERIFY(
            std::all_of(got.begin() + 64, got.begin() + 128, [](float x) { return x == 0.0F; }));
        QVERIFY(unpacked(packed(std::vector<float>(64), 64), 64) == std::vector<float>(64));
    }

    void theCodesOfACheckpointAreTakenAsTheyAre()
    {
        const std::filesystem::path folder = sharedData() / "adapters" / "tiny_nf4";
        if (!std::filesystem::exists(folder))
            QSKIP("no shared data (MILLRACE_SHARED)");
        const ModelConfig config = readModelConfig(folder.string()).value();
        const ParamTable table = buildParamTable(config);
        const auto files = std::move(openWeights(folder.string(), config, table)).value();
        const auto held = nf4Model(table, *files);
        int matrices = 0;
        for (const NamedTensor& tensor : table.tensors) {
            MasterPiece mine;
            MasterPiece theirs;
            const MasterView got = mine.view(tensor.count());
            const MasterView want = theirs.view(tensor.count());
            QVERIFY(held->read(tensor.group, tensor.first, got).ok());
            QVERIFY(files->read(tensor.group, tensor.first, want).ok());
            QVERIFY2(
                std::ranges::equal(got.high, want.high) && std::ranges::equal(got.low, want.low),
                tensor.name.c_str());
            std::vector<std::byte> bytes(nf4Layout(tensor.count()).bytes);
            QCOMPARE(
                files->readNf4(tensor.group, tensor.first, bytes).value(), isLinear(table, tensor));
            matrices += isLinear(table, tensor) ? 1 : 0;
        }
        QCOMPARE(matrices, 7 * config.layers);
    }

private:
    static nlohmann::json vectors()
    {
        std::ifstream file(sharedData() / "adapters" / "nf4.json");
        return file ? nlohmann::json::parse(file) : nlohmann::json();
    }
};

MR_TEST(TestNf4Code)

} // namespace mr::test::tst_nf4_code

#include "tst_nf4_code.moc"
