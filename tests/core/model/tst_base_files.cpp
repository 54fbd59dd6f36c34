// Frozen weights in files: in a model's own, or in one that is prepared from them.

#include "core/device/adamw.h"
#include "core/model/base_files.h"
#include "core/model/model_folder.h"
#include "core/model/packed_group.h"
#include "core/model/prepared_base.h"
#include "core/model/safetensors.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <fstream>
#include <map>

namespace mr::test::tst_base_files {

namespace fs = std::filesystem;

namespace {

std::string asBfloat(const std::string& floats)
{
    std::string out;
    for (std::size_t i = 0; i < floats.size(); i += 4)
        out += floats.substr(i + 2, 2);
    return out;
}

struct Rig {
    explicit Rig(bool nf4 = false)
        : config(mr::test::config(tinyConfig()))
        , model(buildParamTable(config))
        , tensors(tinyTensors(model))
        , path(dir.path().toStdString())
    {
        AdapterSettings settings;
        settings.rank = 2;
        settings.nf4Base = nf4;
        trained = adapterTable(model, settings).value();
    }

    void write() const { put(path / "model.safetensors", safetensors(tensors)); }

    PreparedBaseSpec spec(DType compute)
    {
        PreparedBaseSpec spec{trained, compute, path};
        spec.source = weightStamp(path, config, trained).value();
        spec.open = [this] {
            ++opened;
            return openWeights(path, config, model);
        };
        return spec;
    }

    QTemporaryDir dir;
    ModelConfig config;
    ParamTable model;
    ParamTable trained;
    std::map<std::string, RawTensor> tensors;
    fs::path path;
    int opened = 0;
};

// A block as the files give it; bytes that no extent has are zero.
std::string blockOf(const BaseFiles& base, GroupId group, std::size_t bytes)
{
    std::string out(bytes, '\0');
    for (const BaseExtent& extent : base.extents)
        if (extent.group == group) {
            const std::string file = contents(base.files[static_cast<std::size_t>(extent.file)]);
            file.copy(out.data() + extent.at, extent.bytes, extent.offset);
        }
    return out;
}

std::string plainBlock(const Rig& rig, GroupId group, DType compute)
{
    const auto g = static_cast<std::size_t>(group.value);
    std::string out(sizeOf(compute) * static_cast<std::size_t>(rig.model.groups[g].elements), '\0');
    for (const NamedTensor& tensor : rig.model.tensors) {
        if (tensor.group != group)
            continue;
        const std::string& floats = rig.tensors.at(tensor.name).bytes;
        const std::string bytes = compute == DType::BF16 ? asBfloat(floats) : floats;
        bytes.copy(
            out.data() + sizeOf(compute) * static_cast<std::size_t>(tensor.first), bytes.size());
    }
    return out;
}

std::string packedBlock(Rig& rig, GroupId group)
{
    std::string out(packedGroup(rig.trained, group, DType::BF16).bytes, '\0');
    const auto weights = std::move(openWeights(rig.path, rig.config, rig.model)).value();
    GroupPacker packer(rig.trained, DType::BF16, *weights,
        [&](GroupId, std::size_t at, std::span<const std::byte> bytes) {
            std::memcpy(out.data() + at, bytes.data(), bytes.size());
            return Status();
        });
    MasterPiece piece;
    for (const NamedTensor& tensor : rig.model.tensors)
        if (tensor.group == group)
            (void)forPieces(*weights, {group, tensor.first, tensor.count()}, piece,
                [&](std::int64_t first, const MasterView& view) {
                    return packer.add(group, first, view);
                })
                .ok();
    return out;
}

} // namespace

class TestBaseFiles : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aModelsOwnFilesWillDoInTheTypeOfTheRun()
    {
        Rig rig;
        rig.write();

        const auto own = ownFiles(rig.path, rig.config, rig.trained, DType::F32).value();

        QVERIFY(own.has_value());
        QCOMPARE(own->files.size(), std::size_t{1});
        for (const GroupId block : {GroupId{1}, GroupId{2}}) {
            const std::string expected = plainBlock(rig, block, DType::F32);
            QVERIFY(blockOf(*own, block, expected.size()) == expected);
        }
        QVERIFY(std::ranges::none_of(own->extents, [](const BaseExtent& extent) {
            return extent.group.value == 0 || extent.group.value == 3;
        }));
        QVERIFY(!ownFiles(rig.path, rig.config, rig.trained, DType::BF16).value().has_value());
    }

    void oneTensorOfAnotherTypeIsEnoughForAFileOfTheirOwn()
    {
        Rig rig;
        for (auto& [name, tensor] : rig.tensors) {
            tensor.bytes = asBfloat(tensor.bytes);
            tensor.dtype = "BF16";
        }
        rig.write();
        QVERIFY(ownFiles(rig.path, rig.config, rig.trained, DType::BF16).value().has_value());
        rig.tensors["model.layers.1.input_layernorm.weight"].dtype = "F16";
        rig.write();
        QVERIFY(!ownFiles(rig.path, rig.config, rig.trained, DType::BF16).value().has_value());
        Rig nf4(true);
        nf4.write();
        QVERIFY(!ownFiles(nf4.path, nf4.config, nf4.trained, DType::F32).value().has_value());
    }

    void filesWithoutABlockAreNotOpened()
    {
        Rig rig;
        std::map<std::string, RawTensor> blocks = rig.tensors;
        const std::map<std::string, RawTensor> rest{{"lm_head.weight", blocks["lm_head.weight"]}};
        blocks.erase("lm_head.weight");
        put(rig.path / "a.safetensors", safetensors(rest));
        put(rig.path / "b.safetensors", safetensors(blocks));
        std::string map;
        for (const auto& [name, tensor] : rig.tensors)
            map += (map.empty() ? "\"" : ",\"") + name + "\":\"" +
                   (name == "lm_head.weight" ? "a" : "b") + ".safetensors\"";
        put(rig.path / "model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");

        const auto own = ownFiles(rig.path, rig.config, rig.trained, DType::F32).value();

        QVERIFY(own.has_value());
        QCOMPARE(own->files.size(), std::size_t{1});
        QCOMPARE(own->files.front().filename().string(), std::string("b.safetensors"));
        const std::string expected = plainBlock(rig, GroupId{2}, DType::F32);
        QVERIFY(blockOf(*own, GroupId{2}, expected.size()) == expected);
    }

    void aPreparedFileHasTheFormOfTheRun()
    {
        for (const DType compute : {DType::BF16, DType::F32}) {
            Rig rig;
            rig.write();

            const auto base = preparedBase(rig.spec(compute));

            QVERIFY2(base.ok(), base.status().message().c_str());
            for (const GroupId block : {GroupId{1}, GroupId{2}}) {
                const std::string expected = plainBlock(rig, block, compute);
                QVERIFY(blockOf(Result(base).value(), block, expected.size()) == expected);
            }
        }
        Rig rig(true);
        rig.write();
        auto base = preparedBase(rig.spec(DType::BF16));
        QVERIFY2(base.ok(), base.status().message().c_str());
        for (const GroupId block : {GroupId{1}, GroupId{2}}) {
            const std::string expected = packedBlock(rig, block);
            QVERIFY(blockOf(base.value(), block, expected.size()) == expected);
        }
    }

    void itIsMadeOnceForRunsThatHoldTheModelAlike()
    {
        Rig rig;
        rig.write();
        auto first = preparedBase(rig.spec(DType::BF16));
        QVERIFY(first.ok());
        QCOMPARE(rig.opened, 1);
        auto again = preparedBase(rig.spec(DType::BF16));
        QVERIFY(again.ok());
        QCOMPARE(rig.opened, 1);
        QVERIFY(again.value().files == first.value().files);

        auto other = preparedBase(rig.spec(DType::F32));
        QVERIFY(other.ok());
        QVERIFY(other.value().files != first.value().files);
        rig.tensors["model.layers.0.mlp.up_proj.weight"].bytes[3] ^= 1;
        rig.write();
        fs::last_write_time(rig.path / "model.safetensors",
            fs::file_time_type::clock::now() + std::chrono::seconds(5));
        auto changed = preparedBase(rig.spec(DType::BF16));
        QVERIFY(changed.ok());
        QCOMPARE(rig.opened, 3);
        QVERIFY(changed.value().files != first.value().files);
    }

    void aDamagedFileIsMadeAgain()
    {
        Rig rig;
        rig.write();
        auto base = preparedBase(rig.spec(DType::BF16));
        QVERIFY(base.ok());
        const fs::path file = base.value().files.front();
        const std::string whole = contents(file);
        for (const std::size_t at : {whole.size() - 200, std::size_t{20}}) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ 1);
            put(file, damaged);
            QVERIFY(preparedBase(rig.spec(DType::BF16)).ok());
            QVERIFY(contents(file) == whole);
        }
        put(file, whole.substr(0, whole.size() / 2));
        QVERIFY(preparedBase(rig.spec(DType::BF16)).ok());
        QVERIFY(contents(file) == whole);
        QCOMPARE(rig.opened, 4);
    }

    void whoeverStopsItLeavesNoFile()
    {
        Rig rig;
        rig.write();
        PreparedBaseSpec spec = rig.spec(DType::BF16);
        int asked = 0;
        std::uint64_t done = 0;
        std::uint64_t all = 0;
        spec.cancelled = [&] { return ++asked > 1; };
        spec.progress = [&](std::uint64_t now, std::uint64_t of) {
            done = now;
            all = of;
        };

        const auto stopped = preparedBase(spec);

        QCOMPARE(stopped.status().kind(), ErrorKind::Cancelled);
        for (const auto& entry : fs::recursive_directory_iterator(rig.path))
            QVERIFY(entry.is_directory() || entry.path().filename() == "model.safetensors" ||
                    entry.path().filename() == ".lock");
        QCOMPARE(entryCount(rig.path), 1);
        QCOMPARE(all, preparedBytes(rig.trained, DType::BF16));
        QVERIFY(done > 0 && done < all);
        spec.cancelled = {};
        QVERIFY(preparedBase(spec).ok());
        QCOMPARE(done, all);
    }

    void twoProgramsDoNotPrepareTheSameFile()
    {
        Rig rig;
        rig.write();
        PreparedBaseSpec spec = rig.spec(DType::BF16);
        Status second;
        spec.open = [&] {
            PreparedBaseSpec other = rig.spec(DType::BF16);
            second = preparedBase(other).status();
            return openWeights(rig.path, rig.config, rig.model);
        };

        QVERIFY(preparedBase(spec).ok());

        QCOMPARE(second.kind(), ErrorKind::InvalidArgument);
    }

private:
    // Files named model.safetensors below the folder.
    static int entryCount(const fs::path& folder)
    {
        int count = 0;
        for (const auto& entry : fs::recursive_directory_iterator(folder))
            count += entry.path().filename() == "model.safetensors" ? 1 : 0;
        return count;
    }
};

MR_TEST(TestBaseFiles)

} // namespace mr::test::tst_base_files

#include "tst_base_files.moc"
