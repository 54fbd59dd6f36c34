// The hub cache of Hugging Face: snapshots, revisions, and downloads that have not ended.

#include "core/found/store_rig.h"
#include "support/test_room.h"

#include <QtTest>

namespace mr::test::tst_hugging_face_cache {

namespace {

const std::string kRepo = "hub/models--Mill--Tiny";
const std::string kFirst(40, 'a');
const std::string kSecond(40, 'b');

} // namespace

class TestHuggingFaceCache : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aSnapshotIsFoundByTheNameOfItsRepository();
    void theRevisionNamedMainComesFirst();
    void sharedBlobsCountOnce();
    void unfinishedDownloadsAreTold_data();
    void unfinishedDownloadsAreTold();
    void aDownloadOfAnotherFileHidesNoModel();
    void faultsAreEntries_data();
    void faultsAreEntries();
    void quantisedWeightsTakeAnAdapter();
    void ggufFilesOfASnapshotAreModels();
    void aRepositoryWithoutASlashKeepsItsName();
};

void TestHuggingFaceCache::aSnapshotIsFoundByTheNameOfItsRepository()
{
    const StoreRig rig;
    rig.putSnapshot(kRepo, kFirst);
    rig.putLinked(kRepo, kFirst, "README.md", "---\nlicense: apache-2.0\n---\n# Tiny\n");
    rig.put(kRepo + "/refs/main", kFirst);
    rig.put("hub/datasets--Mill--Rows/refs/main", kFirst);
    rig.put("hub/version.txt", "1");

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{1});
    const LocalModel model = named(found, "Mill/Tiny");
    QCOMPARE(model.store, ModelStore::HuggingFace);
    QCOMPARE(model.path, rig.path(kRepo + "/snapshots/" + kFirst).string());
    QCOMPARE(model.revision, std::string("main"));
    QCOMPARE(model.architecture, std::string("LlamaForCausalLM"));
    QVERIFY(model.parameters > 0);
    QCOMPARE(model.bytes, std::uint64_t{fs::file_size(smallModel().path("model.safetensors"))});
    QCOMPARE(found.bytes, model.bytes);
    QCOMPARE(model.licence, std::string("apache-2.0"));
    QVERIFY2(model.use == ModelUse::Train, model.reason.c_str());
    QVERIFY(!model.reason.empty());
}

void TestHuggingFaceCache::theRevisionNamedMainComesFirst()
{
    const StoreRig rig;
    for (const std::string& revision : {kFirst, kSecond, std::string(40, 'c')})
        rig.putSnapshot(kRepo, revision);
    rig.put(kRepo + "/refs/main", kSecond);
    rig.put(kRepo + "/refs/pr/1", kFirst);

    const auto models = rig.look().models;

    QCOMPARE(models.size(), std::size_t{3});
    QCOMPARE(models[0].name, std::string("Mill/Tiny"));
    QVERIFY(models[0].path.ends_with(kSecond));
    QCOMPARE(models[1].name, std::string("Mill/Tiny@pr/1"));
    QCOMPARE(models[1].revision, std::string("pr/1"));
    QCOMPARE(models[2].name, std::string("Mill/Tiny@cccccccccccc"));
}

void TestHuggingFaceCache::sharedBlobsCountOnce()
{
    const StoreRig rig;
    rig.putSnapshot(kRepo, kFirst);
    rig.putSnapshot(kRepo, kSecond);

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{2});
    QCOMPARE(found.models[0].bytes, found.models[1].bytes);
    QCOMPARE(found.bytes, found.models[0].bytes);
}

void TestHuggingFaceCache::unfinishedDownloadsAreTold_data()
{
    QTest::addColumn<QString>("has"); // the files of the snapshot
    QTest::addColumn<QString>("reason");
    QTest::newRow("a shard") << "config tokenizer index shard1 shard3"
                             << "incomplete: shard 2 of 3 is missing, model-00002-of-00003";
    QTest::newRow("a link to nothing") << "config tokenizer broken"
                                       << "incomplete: its weights, model.safetensors, are missing";
    QTest::newRow("a tokenizer") << "config weights broken-tokenizer"
                                 << "incomplete: tokenizer.model is a link to a file that is not";
    QTest::newRow("weights") << "config tokenizer unfinished"
                             << "incomplete: a download of its repository has not ended, and no "
                                "weights are here";
    QTest::newRow("everything") << "unfinished"
                                << "incomplete: a download of its repository has not ended";
    QTest::newRow("an empty folder") << ""
                                     << "incomplete: its folder in the cache has no snapshot";
    QTest::newRow("no weights") << "config tokenizer"
                                << "no model.safetensors and no ";
    QTest::newRow("a GGUF file") << "broken-gguf"
                                 << "incomplete: q.gguf is a link to a file";
}

void TestHuggingFaceCache::unfinishedDownloadsAreTold()
{
    QFETCH(QString, has);
    QFETCH(QString, reason);
    const StoreRig rig;
    const std::string snapshot = kRepo + "/snapshots/" + kFirst + "/";
    const auto link = [&](const std::string& name) {
        fs::create_directories(rig.path(snapshot));
        fs::create_symlink("../../blobs/none", rig.path(snapshot + name));
    };
    rig.put(kRepo + "/refs/main", kFirst);
    for (const QString& part : has.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        if (part == QLatin1String("config"))
            rig.putLinked(kRepo, kFirst, "config.json", smallModelConfig());
        else if (part == QLatin1String("tokenizer"))
            rig.putLinked(
                kRepo, kFirst, "tokenizer.model", readFile(smallModel().path("tokenizer.model")));
        else if (part == QLatin1String("weights"))
            rig.putLinked(kRepo, kFirst, "model.safetensors",
                readFile(smallModel().path("model.safetensors")));
        else if (part == QLatin1String("index"))
            rig.putLinked(kRepo, kFirst, "model.safetensors.index.json",
                R"({"weight_map": {"a": "model-00001-of-00003.safetensors",
                    "b": "model-00002-of-00003.safetensors",
                    "c": "model-00003-of-00003.safetensors"}})");
        else if (part.startsWith(QLatin1String("shard")))
            rig.putLinked(kRepo, kFirst,
                "model-0000" + part.right(1).toStdString() + "-of-00003.safetensors",
                part.toStdString());
        else if (part == QLatin1String("broken"))
            link("model.safetensors");
        else if (part == QLatin1String("broken-tokenizer"))
            link("tokenizer.model");
        else if (part == QLatin1String("broken-gguf"))
            link("q.gguf");
        else
            rig.put(kRepo + "/blobs/" + kSecond + ".incomplete", "half");
    }

    const LocalModel model = named(rig.look(), "Mill/Tiny");

    QCOMPARE(model.use, ModelUse::Nothing);
    QVERIFY(contains(model.reason, reason.toStdString()));
}

void TestHuggingFaceCache::aDownloadOfAnotherFileHidesNoModel()
{
    const StoreRig rig;
    rig.putSnapshot(kRepo, kFirst);
    rig.put(kRepo + "/refs/main", kFirst);
    rig.put(kRepo + "/blobs/" + kSecond + ".incomplete", "half");

    const LocalModel model = named(rig.look(), "Mill/Tiny");

    QCOMPARE(model.use, ModelUse::Train);
    QVERIFY(contains(model.reason, "a download of its repository has not ended"));
}

void TestHuggingFaceCache::faultsAreEntries_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("content");
    QTest::addColumn<QString>("reason");
    QTest::newRow("nonsense") << "config.json"
                              << "{]"
                              << "config.json: ";
    QTest::newRow("another family")
        << "config.json"
        << R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"})"
        << "The architecture GPT2LMHeadModel is not supported yet: learned positions";
    QTest::newRow("a field") << "config.json"
                             << R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 0})"
                             << "config.json: field \"hidden_size\"";
    QTest::newRow("weights") << "model.safetensors"
                             << "short"
                             << "model.safetensors: ";
    QTest::newRow("tokenizer") << "tokenizer.model"
                               << "x"
                               << "no tokenizer: tokenizer.model";
    QTest::newRow("no tokenizer") << "tokenizer.model"
                                  << ""
                                  << "no tokenizer: has no tokenizer.json";
    QTest::newRow("weights of git-lfs") << "model.safetensors"
                                        << "version https://git-lfs.github.com/spec/v1\n"
                                        << "git lfs pull";
}

void TestHuggingFaceCache::faultsAreEntries()
{
    QFETCH(QString, name);
    QFETCH(QString, content);
    QFETCH(QString, reason);
    const StoreRig rig;
    rig.putSnapshot(kRepo, kFirst);
    rig.put(kRepo + "/refs/main", kFirst);
    rig.putSnapshot("hub/models--Mill--Whole", kFirst);
    rig.put("hub/models--Mill--Whole/refs/main", kFirst);
    const std::string file = kRepo + "/snapshots/" + kFirst + "/" + name.toStdString();
    fs::remove(rig.path(file));
    if (!content.isEmpty())
        rig.put(file, content.toStdString());

    const LocalModels found = rig.look();
    const LocalModel model = named(found, "Mill/Tiny");

    QCOMPARE(model.use, ModelUse::Nothing);
    QVERIFY(contains(model.reason, reason.toStdString()));
    QVERIFY(model.reason.find(rig.path().string()) == std::string::npos);
    QVERIFY(model.reason.find("supported: ") == std::string::npos);
    QCOMPARE(named(found, "Mill/Whole").use, ModelUse::Train);
}

void TestHuggingFaceCache::quantisedWeightsTakeAnAdapter()
{
    const fs::path nf4 = fs::path(sharedData()) / "adapters" / "tiny_nf4";
    if (!fs::exists(nf4))
        QSKIP("the shared test data is not there");
    const StoreRig rig;
    for (const auto& file : fs::directory_iterator(nf4))
        rig.putLinked(
            kRepo, kFirst, file.path().filename().string(), readFile(file.path().string()));
    const std::string snapshot = kRepo + "/snapshots/" + kFirst;
    if (!fs::exists(rig.path(snapshot + "/tokenizer.model")))
        rig.putLinked(kRepo, kFirst, "tokenizer.model",
            readFile(
                (fs::path(sharedData()) / "models" / "stories260K" / "tokenizer.model").string()));
    rig.put(kRepo + "/refs/main", kFirst);

    const LocalModel model = named(rig.look(), "Mill/Tiny");

    QVERIFY2(model.use == ModelUse::Adapter, model.reason.c_str());
    QVERIFY(contains(model.reason, "quantised (NF4)"));
}

void TestHuggingFaceCache::ggufFilesOfASnapshotAreModels()
{
    const StoreRig rig;
    const std::string card = "---\nlicense: mit\n---\n";
    rig.putLinked(kRepo, kFirst, "README.md", card);
    rig.putLinked(kRepo, kFirst, "tiny.gguf", smallGguf());
    rig.putLinked(kRepo, kFirst, "mmproj-tiny.gguf", "GGUF");
    rig.put(kRepo + "/refs/main", kFirst);
    const std::string several = "hub/models--Mill--Several";
    rig.putLinked(several, kFirst, "config.json", smallModelConfig());
    rig.putLinked(several, kFirst, "README.md", card);
    rig.putLinked(several, kFirst, "Q8/tiny-q8.gguf", smallGguf());
    rig.putLinked(several, kFirst, "tiny-f32.gguf", smallGguf());
    rig.put(several + "/refs/main", kFirst);

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{3});
    const LocalModel alone = named(found, "Mill/Tiny");
    QVERIFY2(alone.use == ModelUse::Adapter, alone.reason.c_str());
    QVERIFY(alone.path.ends_with("/tiny.gguf"));
    QVERIFY(contains(alone.reason, "an adapter beside it can be trained"));
    QCOMPARE(alone.bytes, std::uint64_t{smallGguf().size()});
    QCOMPARE(alone.architecture, std::string("LlamaForCausalLM"));
    QCOMPARE(alone.licence, std::string("mit"));
    QCOMPARE(named(found, "Mill/Several/tiny-q8.gguf").licence, std::string("mit"));
    QCOMPARE(named(found, "Mill/Several/tiny-f32.gguf").use, ModelUse::Adapter);
}

void TestHuggingFaceCache::aRepositoryWithoutASlashKeepsItsName()
{
    const StoreRig rig;
    rig.putSnapshot("hub/models--tiny", kFirst);
    rig.put("hub/models--tiny/refs/main", kFirst);

    QCOMPARE(named(rig.look(), "tiny").use, ModelUse::Train);
}

MR_TEST(TestHuggingFaceCache)

} // namespace mr::test::tst_hugging_face_cache

#include "tst_hugging_face_cache.moc"
