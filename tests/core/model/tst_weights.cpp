// Weights from a folder into the master: files found, files refused, and the bits that arrive.

#include "core/device/adamw.h"
#include "core/model/export_plan.h"
#include "core/model/model_folder.h"
#include "core/model/weights.h"
#include "support/test_room.h"

#include <QTest>

#include <cmath>

namespace mr::test::tst_weights {

namespace {

// A folder with config.json and the files of one test.
struct Folder {
    explicit Folder(bool tied = false)
        : config(mr::test::config(tinyConfig(tied)))
        , table(buildParamTable(config))
        , tensors(tinyTensors(table))
        , path(dir.path().toStdString())
    {
    }

    void write() { put(path / "model.safetensors", safetensors(tensors)); }
    Result<WeightFiles> find() { return findWeights(path, config, table); }
    std::string refusal() { return find().status().message(); }

    Status load(MasterBuffers& master)
    {
        auto weights = openWeights(path, config, table);
        MR_TRY(weights.status());
        return master.fill(*weights.value());
    }

    QTemporaryDir dir;
    ModelConfig config;
    ParamTable table;
    std::map<std::string, RawTensor> tensors;
    std::filesystem::path path;
};

const std::string kNorm = "model.norm.weight";

// Two shards and an index over them.
void writeSharded(Folder& f, const std::string& secondName = "b.safetensors")
{
    std::map<std::string, RawTensor> first = f.tensors;
    const std::map<std::string, RawTensor> second{{kNorm, first[kNorm]}};
    first.erase(kNorm);
    put(f.path / "a.safetensors", safetensors(first));
    put(f.path / "b.safetensors", safetensors(second));
    std::string map;
    for (const auto& [name, tensor] : f.tensors)
        map += (map.empty() ? "\"" : ",\"") + name + "\":\"" +
               (name == kNorm ? secondName : "a.safetensors") + "\"";
    put(f.path / "model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
}

float at(const MasterBuffers& m, const NamedTensor& t, std::int64_t i)
{
    const auto g = static_cast<std::size_t>(t.group.value);
    const auto e = static_cast<std::size_t>(t.first + i);
    return joinHalves(m.high[g][e], m.low[g][e]);
}

// F32 `bytes` as BF16 or F16; exact for the values of tinyTensors.
std::string narrowed(const std::string& bytes, bool half)
{
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
        float value = 0.0F;
        std::memcpy(&value, bytes.data() + i, 4);
        std::uint16_t bits = highHalf(value);
        if (half && value == 0.0F) {
            bits = 0;
        } else if (half) {
            int exponent = 0;
            const float m = std::frexp(std::fabs(value), &exponent); // m in [0.5, 1)
            const auto mantissa = static_cast<std::uint16_t>((m * 2.0F - 1.0F) * 1024.0F);
            bits = static_cast<std::uint16_t>(
                (value < 0.0F ? 0x8000 : 0) | ((exponent + 14) << 10) | mantissa);
        }
        out.append(reinterpret_cast<const char*>(&bits), 2);
    }
    return out;
}

} // namespace

class TestWeights : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyTensorArrivesWhereTheTableSays()
    {
        Folder f;
        f.write();
        MasterBuffers master(f.table);

        const Status status = f.load(master);

        QVERIFY2(status.ok(), status.message().c_str());
        for (const NamedTensor& t : f.table.tensors)
            for (std::int64_t i = 0; i < t.count(); ++i) {
                float expected = 0.0F;
                std::memcpy(&expected, f.tensors[t.name].bytes.data() + 4 * i, 4);
                QVERIFY2(at(master, t, i) == expected, t.name.c_str());
            }
    }

    void paddingIsZeroAfterLoadingAndInitializing()
    {
        Folder f;
        f.write();
        for (int initialize = 0; initialize < 2; ++initialize) {
            MasterBuffers master(f.table, 0x7777);
            if (initialize == 1)
                QVERIFY(master.fill(*initialWeights(f.config, f.table, 1)).ok());
            else
                QVERIFY(f.load(master).ok());
            for (const NamedTensor& t : f.table.tensors)
                for (std::int64_t i = 0; i < t.count(); ++i) {
                    const auto g = static_cast<std::size_t>(t.group.value);
                    master.high[g][static_cast<std::size_t>(t.first + i)] = 0;
                    master.low[g][static_cast<std::size_t>(t.first + i)] = 0;
                }
            for (std::size_t g = 0; g < master.high.size(); ++g) {
                QVERIFY(std::count(master.high[g].begin(), master.high[g].end(), 0) ==
                        std::ssize(master.high[g]));
                QVERIFY(std::count(master.low[g].begin(), master.low[g].end(), 0) ==
                        std::ssize(master.low[g]));
            }
        }
    }

    // Wherever a piece begins: between slots, within a tensor, or with the second of two normals.
    void piecesOfAMasterAreThoseOfTheWhole()
    {
        Folder f;
        f.write();
        for (const bool initialize : {false, true}) {
            auto opened = openWeights(f.path, f.config, f.table);
            QVERIFY(opened.ok());
            const auto reader =
                initialize ? initialWeights(f.config, f.table, 1) : std::move(opened).value();
            MasterBuffers whole(f.table);
            QVERIFY(whole.fill(*reader).ok());
            for (std::size_t g = 0; g < whole.high.size(); ++g) {
                std::vector<std::uint16_t> high;
                std::vector<std::int16_t> low;
                MasterPiece piece;
                const auto append = [&](std::int64_t first, const MasterView& view) {
                    if (first == std::ssize(high) + 1 && view.high.size() <= 7) {
                        high.insert(high.end(), view.high.begin(), view.high.end());
                        low.insert(low.end(), view.low.begin(), view.low.end());
                    }
                    return Status();
                };

                const MasterRange range{
                    GroupId{static_cast<std::int32_t>(g)}, 1, f.table.groups[g].elements - 1};
                QVERIFY(forPieces(*reader, range, piece, append, 7).ok());

                QVERIFY(std::ranges::equal(high, std::span(whole.high[g]).subspan(1)));
                QVERIFY(std::ranges::equal(low, std::span(whole.low[g]).subspan(1)));
            }
        }
    }

    void halfPrecisionFilesGiveTheSameMaster()
    {
        Folder f;
        f.write();
        MasterBuffers full(f.table);
        QVERIFY(f.load(full).ok());
        for (const bool half : {false, true}) {
            Folder g;
            for (auto& [name, t] : g.tensors)
                t = {half ? "F16" : "BF16", t.shape, narrowed(t.bytes, half)};
            g.write();
            MasterBuffers narrow(g.table);
            QVERIFY(g.load(narrow).ok());
            QCOMPARE(hashOf(g.table, narrow), hashOf(f.table, full));
        }
    }

    void shardsGiveTheSameMasterAsOneFile()
    {
        Folder one;
        one.write();
        Folder two;
        writeSharded(two);
        MasterBuffers a(one.table);
        MasterBuffers b(two.table);

        QVERIFY(one.load(a).ok());
        const Status status = two.load(b);

        QVERIFY2(status.ok(), status.message().c_str());
        QCOMPARE(hashOf(one.table, a), hashOf(two.table, b));
        QCOMPARE(two.find().value().files.size(), std::size_t{2});
    }

    void indexMayNotLeaveTheFolderOrLie()
    {
        for (const char* name :
            {"/etc/b.safetensors", "../b.safetensors", "x/../../b.safetensors", "", "b.bin"}) {
            Folder f;
            writeSharded(f, name);
            QVERIFY2(has(f.refusal(), "not a .safetensors file inside the folder"), name);
        }
        Folder lying;
        writeSharded(lying, "a.safetensors");
        QVERIFY(has(lying.refusal(), "but it does not"));
        Folder absent;
        writeSharded(absent, "c.safetensors");
        QVERIFY(has(absent.refusal(), "c.safetensors: this weight file is missing"));
        Folder twice;
        writeSharded(twice);
        put(twice.path / "b.safetensors",
            safetensors({{kNorm, twice.tensors[kNorm]},
                {"lm_head.weight", twice.tensors["lm_head.weight"]}}));
        QVERIFY(has(twice.refusal(), "is also in"));
    }

    void missingTensorsAreNamedAndTheRestCounted()
    {
        Folder f;
        f.tensors.erase(kNorm);
        f.write();
        QVERIFY(has(f.refusal(), "missing tensors: " + kNorm));
        for (auto it = f.tensors.begin(); it != f.tensors.end();)
            it = it->first.starts_with("model.layers.1.") ? f.tensors.erase(it) : std::next(it);
        f.write();
        QVERIFY2(has(f.refusal(), "and 12 more"), f.refusal().c_str());
    }

    void surplusAndMisshapenTensorsAreNamed()
    {
        Folder f;
        f.tensors["model.layers.9.x"] = {"F32", {1}, std::string(4, '\0')};
        f.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
            "F32", {1}, std::string(4, '\0')};
        f.tensors[kNorm].shape = {3, 4};
        f.tensors["lm_head.weight"].dtype = "I32";
        f.write();

        const std::string message = f.refusal();

        QVERIFY(has(message, "model.layers.9.x") && !has(message, "inv_freq"));
        QVERIFY2(has(message, kNorm + " is [3, 4], config.json asks for [12]"), message.c_str());
        QVERIFY(has(message, "lm_head.weight is I32"));
    }

    void untiedModelWithoutHeadIsRefused()
    {
        Folder f;
        f.tensors.erase("lm_head.weight");
        f.write();
        QVERIFY(has(f.refusal(), "lm_head.weight") && has(f.refusal(), "tie_word_embeddings"));
    }

    void tiedModelMayRepeatItsEmbeddingButNothingElse()
    {
        Folder f(true);
        f.tensors["lm_head.weight"] = f.tensors["model.embed_tokens.weight"];
        f.write();
        QCOMPARE(f.refusal(), std::string());
        f.tensors["lm_head.weight"].bytes[5] ^= 1;
        f.write();
        QVERIFY2(has(f.refusal(), "lm_head.weight differs"), f.refusal().c_str());
    }

    void folderWithoutSafetensorsSaysWhatItHas()
    {
        Folder f;
        QVERIFY(has(f.refusal(), "no model.safetensors"));
        put(f.path / "pytorch_model.bin", "PK");
        QVERIFY(has(f.refusal(), "pytorch_model.bin") && has(f.refusal(), "convert"));
        put(f.path / "model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
        QVERIFY(has(f.refusal(), "git lfs pull"));
    }

    void numbersThatAreNoneAreRefusedWithTensorAndElement()
    {
        for (const float bad : {std::nanf(""), -INFINITY, 3.4e38F}) {
            Folder f;
            std::memcpy(f.tensors[kNorm].bytes.data() + 4 * 7, &bad, 4);
            f.write();
            MasterBuffers master(f.table);
            const std::string message = f.load(master).message();
            QVERIFY2(has(message, kNorm) && has(message, "element 7"), message.c_str());
        }
    }

    void initialValuesDependOnNameAndSeedAlone()
    {
        Folder f;
        MasterBuffers a(f.table);
        MasterBuffers b(f.table);
        MasterBuffers c(f.table);

        QVERIFY(a.fill(*initialWeights(f.config, f.table, 1)).ok());
        QVERIFY(b.fill(*initialWeights(f.config, f.table, 1)).ok());
        QVERIFY(c.fill(*initialWeights(f.config, f.table, 2)).ok());

        const std::string hash = hashOf(f.table, a);
        QCOMPARE(hash.size(), std::size_t{32});
        QCOMPARE(hashOf(f.table, b), hash);
        QVERIFY(hashOf(f.table, c) != hash);
    }

    void normsBeginWhereTheirGainIsOne()
    {
        for (const bool onePlus : {false, true}) {
            ModelConfig c = config(tinyConfig());
            c.onePlusNorms = onePlus;
            const ParamTable table = buildParamTable(c);
            MasterBuffers m(table);

            QVERIFY(m.fill(*initialWeights(c, table, 3)).ok());

            const ParamSlot* norm = table.find(GroupId{1}, SlotKind::MlpNorm);
            const auto at = static_cast<std::size_t>(norm->first);
            QCOMPARE(joinHalves(m.high[1][at], m.low[1][at]), onePlus ? 0.0F : 1.0F);
        }
    }

    void initialValuesHaveTheAskedSpread()
    {
        ModelConfig c = config(tinyConfig());
        c.vocab = 4000;
        const ParamTable table = buildParamTable(c);
        MasterBuffers m(table);
        QVERIFY(m.fill(*initialWeights(c, table, 3)).ok());

        const NamedTensor& embedding = table.tensors.front();
        double sum = 0.0;
        double squares = 0.0;
        for (std::int64_t i = 0; i < embedding.count(); ++i) {
            sum += double(at(m, embedding, i));
            squares += double(at(m, embedding, i)) * double(at(m, embedding, i));
        }
        // n = 48,000: the mean has a deviation of s / sqrt(n), the variance of s^2 sqrt(2 / n);
        // five of each are allowed.
        const auto n = static_cast<double>(embedding.count());
        QVERIFY(std::fabs(sum / n) < 5.0 * 0.02 / std::sqrt(n));
        QVERIFY(std::fabs(squares / n / 4e-4 - 1.0) < 5.0 * std::sqrt(2.0 / n));
        for (const NamedTensor& t : table.tensors)
            if (t.shape.size() == 1)
                QVERIFY(at(m, t, 0) == (t.name.ends_with(".bias") ? 0.0F : 1.0F));
    }

    void hashSeesEveryValueButNotThePadding()
    {
        Folder f;
        MasterBuffers m(f.table);
        QVERIFY(m.fill(*initialWeights(f.config, f.table, 1)).ok());
        const std::string hash = hashOf(f.table, m);

        m.high[3][13] ^= 1; // between the final norm (12 elements) and the next slot
        QCOMPARE(hashOf(f.table, m), hash);
        m.low[3][11] ^= 1;
        QVERIFY(hashOf(f.table, m) != hash);
    }

    void publishedModelIsLoaded()
    {
        const auto folder = sharedData() / "models/stories260K";
        if (!std::filesystem::is_directory(folder)) {
            qInfo("skipped: no shared data (MILLRACE_SHARED)");
            return;
        }
        Result<ModelConfig> c = readModelConfig(folder);
        QVERIFY(c.ok());
        const ParamTable table = buildParamTable(c.value());
        QCOMPARE(table.parameters, std::int64_t{260'032});
        auto weights = openWeights(folder, c.value(), table);
        QVERIFY2(weights.ok(), weights.status().message().c_str());
        MasterBuffers m(table);
        QVERIFY(m.fill(*weights.value()).ok());
    }
};

MR_TEST(TestWeights)

} // namespace mr::test::tst_weights

#include "tst_weights.moc"
