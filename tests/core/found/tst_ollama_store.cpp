// The store of Ollama: names, blobs, and manifests that say something else.

#include "core/found/store_rig.h"
#include "support/test_room.h"

#include <QtTest>

namespace mr::test::tst_ollama_store {

namespace {

const std::string kTiny = "registry.ollama.ai/library/tiny/1b";

} // namespace

class TestOllamaStore : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aModelIsABlobWithAName();
    void namesLeaveOutWhatIsOllamasOwn();
    void namesThatShareABlobCountItOnce();
    void theNameOfABlobMayBeTheOlderOne();
    void faultsAreEntries_data();
    void faultsAreEntries();
    void aReaderOfPicturesIsLeftOut();
};

void TestOllamaStore::aModelIsABlobWithAName()
{
    const StoreRig rig;
    rig.putManifest(
        kTiny, {rig.layer("model", smallGguf()), rig.layer("template", "{{ .Prompt }}"),
                   rig.layer("license", "\n   TINY COMMUNITY LICENSE  \n\nYou may.\n")});
    rig.put("ollama/manifests/.DS_Store", "x");

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{1});
    const LocalModel model = named(found, "tiny:1b");
    QVERIFY2(model.use == ModelUse::Adapter, model.reason.c_str());
    QCOMPARE(model.store, ModelStore::Ollama);
    QCOMPARE(model.path, rig.path("ollama/blobs/sha256-" + sha256(smallGguf())).string());
    QCOMPARE(model.licence, std::string("TINY COMMUNITY LICENSE"));
    QCOMPARE(model.bytes, std::uint64_t{smallGguf().size()});
    QVERIFY(model.parameters > 0);
}

void TestOllamaStore::namesLeaveOutWhatIsOllamasOwn()
{
    const StoreRig rig;
    for (const char* name :
        {"registry.ollama.ai/library/llama3.2/latest", "registry.ollama.ai/someone/llama3.2/latest",
            "hf.co/Mill/Tiny-GGUF/Q8_0", "localhost/library/own/x"})
        rig.putManifest(name, {rig.layer("model", smallGguf())});

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{4});
    for (const char* name : {"llama3.2:latest", "someone/llama3.2:latest",
             "hf.co/Mill/Tiny-GGUF:Q8_0", "localhost/library/own:x"})
        QCOMPARE(named(found, name).use, ModelUse::Adapter);
}

void TestOllamaStore::namesThatShareABlobCountItOnce()
{
    const StoreRig rig;
    rig.putManifest(kTiny, {rig.layer("model", smallGguf())});
    rig.putManifest("registry.ollama.ai/library/tiny/latest", {rig.layer("model", smallGguf())});

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{2});
    QCOMPARE(found.bytes, std::uint64_t{smallGguf().size()});
}

void TestOllamaStore::theNameOfABlobMayBeTheOlderOne()
{
    const StoreRig rig;
    rig.putManifest(kTiny, {rig.layer("model", smallGguf())});
    const std::string digest = sha256(smallGguf());
    fs::rename(
        rig.path("ollama/blobs/sha256-" + digest), rig.path("ollama/blobs/sha256:" + digest));

    const LocalModel model = named(rig.look(), "tiny:1b");

    QCOMPARE(model.use, ModelUse::Adapter);
    QVERIFY(model.path.ends_with("sha256:" + digest));
}

void TestOllamaStore::faultsAreEntries_data()
{
    QTest::addColumn<QString>("layers"); // a whole manifest where it begins with another letter
    QTest::addColumn<QString>("reason");
    const std::string digest(64, 'a');
    const auto layer = [](const std::string& kind, const std::string& hash) {
        return "[" + QString::fromStdString(StoreRig::layerText(kind, hash, 4));
    };
    QTest::newRow("no JSON") << "{{"
                             << "manifests/" + QString::fromStdString(kTiny) + ": ";
    QTest::newRow("a list") << "{}"
                            << "field \"layers\" must be a list";
    QTest::newRow("layers of numbers") << "[1"
                                       << "layer 1: ";
    QTest::newRow("no layers") << "["
                               << "names no GGUF file";
    QTest::newRow("no model") << layer("license", "sha256:" + digest) << "names no GGUF file";
    QTest::newRow("two models") << layer("model", "sha256:" + digest) + ", " +
                                       layer("model", "sha256:" + digest).mid(1)
                                << "names 2 model files";
    QTest::newRow("a missing blob") << layer("model", "sha256:" + digest)
                                    << "incomplete: blob sha256-aaaaaaaaaaaa... is missing";
    QTest::newRow("a path") << layer("model", "sha256:../../../../etc/passwd")
                            << "layer 1: field \"digest\" is \"sha256:../../";
    QTest::newRow("a path of 64 bytes")
        << layer("model", "sha256:../" + std::string(61, 'a')) << "must be sha256: and 64";
    QTest::newRow("another hash") << layer("model", "sha512:" + digest) << "must be sha256: and 64";
    QTest::newRow("a path in the licence")
        << layer("license", "sha256:../x") << "layer 1: field \"digest\"";
    QTest::newRow("a digest of no text") << R"([{"digest": 7, "size": 1})"
                                         << "field \"digest\"";
    QTest::newRow("no size") << R"([{"digest": "sha256:)" + QString::fromStdString(digest) + "\"}"
                             << "field \"size\"";
    QTest::newRow("below zero") << R"([{"size": -1})"
                                << "field \"size\"";
    QTest::newRow("half a blob") << "half"
                                 << "has 4 of ";
    QTest::newRow("a partial download") << "partial"
                                        << "its download has not ended";
    QTest::newRow("another file") << "text"
                                  << "not a GGUF file";
    QTest::newRow("an adapter") << "adapter"
                                << "carries an adapter";
    QTest::newRow("another architecture") << "other"
                                          << "The architecture mamba is not supported";
}

void TestOllamaStore::faultsAreEntries()
{
    QFETCH(QString, layers);
    QFETCH(QString, reason);
    const StoreRig rig;
    rig.putManifest("registry.ollama.ai/library/whole/1b", {rig.layer("model", smallGguf())});
    const std::string digest(64, 'b');
    if (layers.startsWith(QLatin1Char('['))) {
        rig.putManifest(kTiny, {layers.mid(1).toStdString()});
    } else if (layers.startsWith(QLatin1Char('{'))) {
        rig.put("ollama/manifests/" + kTiny, layers.toStdString());
    } else if (layers == QLatin1String("half")) {
        rig.put("ollama/blobs/sha256-" + digest, "GGUF");
        rig.putManifest(kTiny, {StoreRig::layerText("model", "sha256:" + digest, 4000)});
    } else if (layers == QLatin1String("partial")) {
        rig.put("ollama/blobs/sha256-" + digest + "-partial", "GGUF");
        rig.putManifest(kTiny, {StoreRig::layerText("model", "sha256:" + digest, 4000)});
    } else if (layers == QLatin1String("text")) {
        rig.putManifest(kTiny, {rig.layer("model", "once upon a time")});
    } else if (layers == QLatin1String("adapter")) {
        rig.putManifest(kTiny, {rig.layer("model", smallGguf()), rig.layer("adapter", "GGUF")});
    } else {
        rig.putManifest(kTiny,
            {rig.layer("model", ggufOf({{"general.architecture", GgufValue::string("mamba")}}))});
    }

    const LocalModels found = rig.look();
    const LocalModel model = named(found, "tiny:1b");

    QCOMPARE(model.use, ModelUse::Nothing);
    QVERIFY(contains(model.reason, reason.toStdString()));
    QCOMPARE(named(found, "whole:1b").use, ModelUse::Adapter);
}

void TestOllamaStore::aReaderOfPicturesIsLeftOut()
{
    const StoreRig rig;
    rig.putManifest(kTiny, {rig.layer("model", smallGguf()), rig.layer("projector", "GGUF")});

    const LocalModel model = named(rig.look(), "tiny:1b");

    QCOMPARE(model.use, ModelUse::Adapter);
    QVERIFY(contains(model.reason, "Its reader of pictures is left out."));
}

MR_TEST(TestOllamaStore)

} // namespace mr::test::tst_ollama_store

#include "tst_ollama_store.moc"
