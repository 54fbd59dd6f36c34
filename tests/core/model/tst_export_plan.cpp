// Files of a saved model: shards, types and order of tensors, the type that the config names.

#include "core/model/export_plan.h"
#include "core/model/filled_model.h"
#include "core/model/safetensors.h"
#include "support/test_room.h"

#include <QTest>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mr::test::tst_export_plan {

namespace {

namespace fs = std::filesystem;

// The model in BF16 but for one tensor, as safetensors writes it: the widest first.
void writeMixed(const fs::path& folder, const FilledModel& m, const std::string& wide)
{
    fs::create_directories(folder);
    put(folder / "config.json", withDtype(tinyConfig(), ExportType::BF16));
    std::vector<SafetensorSource> tensors;
    for (const auto& [name, raw] : tinyTensors(m.table)) {
        std::string bytes;
        for (std::size_t at = 2; at < raw.bytes.size(); at += 4)
            bytes += raw.bytes.substr(at, 2);
        if (name == wide)
            bytes = raw.bytes.substr(0, 3) + "x" + raw.bytes.substr(4);
        const auto fill = [bytes](std::uint64_t offset, std::span<std::byte> out) {
            std::memcpy(out.data(), bytes.data() + offset, out.size());
            return Status();
        };
        const SafetensorSource made{
            name, name == wide ? "F32" : "BF16", raw.shape, bytes.size(), fill};
        tensors.insert(name == wide ? tensors.begin() : tensors.end(), made);
    }
    if (!writeSafetensors(folder / "model.safetensors", tensors).ok())
        qFatal("a file cannot be written");
}

} // namespace

class TestExportPlan : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void shardsKeepTheirLimitAndLoadTheSame()
    {
        FilledModel m;
        put(m.path / "model.safetensors", "left over");
        put(m.path / "config.json", tinyConfig());
        const std::uint64_t limit = 2000;

        const Status status = writeShards(m.path, m.table, m.master, ExportType::F32, limit);

        QVERIFY2(status.ok(), status.message().c_str());
        QCOMPARE(hashOfFolder(m.path), hashOf(m.table, m.master));
        const auto index = nlohmann::json::parse(contents(m.path / "model.safetensors.index.json"));
        QCOMPARE(index["metadata"]["total_size"].get<std::int64_t>(), 4 * m.table.parameters);
        std::map<std::string, std::vector<std::string>> shards;
        for (const auto& item : index["weight_map"].items())
            shards[item.value().get<std::string>()].push_back(item.key());
        QVERIFY(shards.size() > 2);
        for (const auto& [file, names] : shards) {
            const auto reader = std::move(SafetensorsReader::open(m.path / file)).value();
            std::uint64_t bytes = 0;
            for (const std::string& name : names)
                bytes += reader.entries().at(name).end - reader.entries().at(name).begin;
            QVERIFY(bytes <= limit || names.size() == 1);
        }
    }

    void fileCarriesTheMetadataLoadersAskFor()
    {
        FilledModel m;
        QVERIFY(writeShards(m.path, m.table, m.master, ExportType::F32, kShardBytes).ok());

        const std::string bytes = contents(m.path / "model.safetensors");

        QVERIFY(has(bytes.substr(8, 64), R"({"__metadata__":{"format":"pt"},)"));
        QCOMPARE(static_cast<unsigned char>(bytes[0]) % 8, 0); // the data begins aligned
        for (const auto& entry : fs::directory_iterator(m.path))
            QVERIFY(!has(entry.path().filename().string(), ".part"));
    }

    // Qwen 3.5 is published in BF16 with decays in F32.
    void whatWasInF32BesideOthersStaysInF32()
    {
        FilledModel m;
        const std::string wide = "model.layers.1.mlp.down_proj.bias";
        const fs::path read = m.path / "read";
        writeMixed(read, m, wide);
        const ModelConfig config = std::move(readModelConfig(read)).value();
        const ParamTable table = buildParamTable(config);
        const auto weights = std::move(openWeights(read, config, table)).value();

        QVERIFY(saveModel(m.path / "out", config, table, *weights, ExportType::BF16, {}).ok());
        QVERIFY(saveModel(m.path / "f32", config, table, *weights, ExportType::F32, {}).ok());

        QVERIFY(contents(m.path / "out/model.safetensors") == contents(read / "model.safetensors"));
        const auto f32 =
            std::move(SafetensorsReader::open(m.path / "f32/model.safetensors")).value();
        for (const auto& [name, entry] : f32.entries())
            QCOMPARE(entry.dtype, std::string("F32"));
    }

    void configKeepsEveryByteButItsDtype()
    {
        const auto bf16 = [](const char* text) { return withDtype(text, ExportType::BF16); };
        QCOMPARE(bf16("{ \"a\" : [1,\t2.50], \"torch_dtype\" :\n\"float32\" , \"b\":1e-05}"),
            std::string("{ \"a\" : [1,\t2.50], \"torch_dtype\" :\n\"bfloat16\" , \"b\":1e-05}"));
        QCOMPARE(bf16("{\"dtype\":null}"), std::string("{\"dtype\":\"bfloat16\"}"));
        QCOMPARE(bf16("{\"x\":{\"dtype\":\"a\"},\"y\":\"dtype\",\"dtype\":\"q\"}"),
            std::string("{\"x\":{\"dtype\":\"a\"},\"y\":\"dtype\",\"dtype\":\"bfloat16\"}"));
        QCOMPARE(bf16("{\"x\":\"\\\"dtype\\\":\",\"dtype\":\"q\"}"),
            std::string("{\"x\":\"\\\"dtype\\\":\",\"dtype\":\"bfloat16\"}"));
        const auto added = nlohmann::json::parse(bf16("{\"a\":1}"));
        QVERIFY(added["torch_dtype"] == "bfloat16" && added["a"] == 1);
        QCOMPARE(withDtype(tinyConfig(), ExportType::F32), tinyConfig());
        // In a model within another its part of the config says it again. A tower keeps its own.
        QCOMPARE(bf16("{\"text_config\":{\"a\":{\"dtype\":\"b\"},\"dtype\":\"q\"},"
                      "\"vision_config\":{\"dtype\":\"c\"},\"dtype\":\"r\"}"),
            std::string("{\"text_config\":{\"a\":{\"dtype\":\"b\"},\"dtype\":\"bfloat16\"},"
                        "\"vision_config\":{\"dtype\":\"c\"},\"dtype\":\"bfloat16\"}"));
        QCOMPARE(bf16("{\"text_config\":{\"torch_dtype\":\"q\"}}"),
            std::string("{\"text_config\":{\"torch_dtype\":\"bfloat16\"}}"));
    }
};

MR_TEST(TestExportPlan)

} // namespace mr::test::tst_export_plan

#include "tst_export_plan.moc"
